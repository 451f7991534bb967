# SPDX-License-Identifier: MIT
"""Server: `snapkv serve` in a process of its own, for tests of what the system does with it. Talks to
127.0.0.1 only."""
import http.client
import json
import os
import resource
import signal
import subprocess
import threading
import time


class Server:
    """A running `snapkv serve` on a free port of this machine; `folder` holds its snapshots."""

    def __init__(self, program, model, folder, *more, limits=()):
        def limit():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))

        command = [program, "serve", "-m", model, "--port", "0", "--snapshot-dir", folder,
                   "-t", "1", "--no-progress", *more]
        if "--kv-memory" not in more:
            command += ["--kv-memory", "512M"]
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "OMP_WAIT_POLICY": "passive"}
        environment.update({name: value for name, value in os.environ.items()
                            if name.endswith("SAN_OPTIONS")})
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment,
                                        preexec_fn=limit)
        self.errors = ""
        while "ready: " not in self.errors:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError("the server did not start: " + self.errors)
            self.errors += line
        self.port = int(self.errors.rsplit(":", 1)[1])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None):
        connection = self.connect()
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    def complete(self, prompt, **more):
        return self.request("POST", "/v1/completions",
                            {"prompt": prompt, "max_tokens": 8, "temperature": 0, **more})

    def metric(self, name):
        connection = self.connect()
        connection.request("GET", "/metrics")
        for line in connection.getresponse().read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(name)

    def wait_until(self, condition):
        until = time.time() + 30
        while not condition():
            if time.time() > until:
                raise AssertionError("it did not come to be")
            time.sleep(0.02)

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def n_threads(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(next(line.split()[1] for line in f if line.startswith("Threads:")))
