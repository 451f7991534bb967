# SPDX-License-Identifier: MIT
"""A `snapkv serve` for measurements, at a free port of 127.0.0.1."""
import http.client
import json
import os
import subprocess


class LocalServer:
    def __init__(self, program, model, threads, *more):
        command = [program, "serve", "-m", model, "--port", "0", *more, "-t", str(threads), "--no-progress"]
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}  # waiting must not count as work
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        errors = ""
        while "ready: " not in errors:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the server did not start: " + errors)
            errors += line
        self.port = int(errors.rsplit(":", 1)[1])

    def post(self, path, body):
        """The answer as JSON. Ends the program if it is an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        connection.close()
        if response.status != 200:
            raise SystemExit(text.decode())
        return json.loads(text)

    def stop(self):
        self.process.terminate()
        self.process.terminate()  # the second signal ends it at once
        self.process.wait()
