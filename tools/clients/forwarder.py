# SPDX-License-Identifier: MIT
"""A forwarder between a client and the server, for agents whose models must be made to call a tool:
it may add members to a request's body, and changes no answer."""
import http.client
import http.server
import json
import threading
from urllib.parse import urlparse

PASSED_ON = ("Content-Type", "anthropic-version", "x-api-key", "Authorization")


def start(url, added):
    """Forwards to the server at `url`. `added(body)` returns what a request's body gets in addition.
    Returns the forwarder's own URL; it ends with the program."""
    server = urlparse(url)

    class Forwarder(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body |= added(body)
            connection = http.client.HTTPConnection(server.hostname, server.port)
            connection.request("POST", self.path, json.dumps(body),
                               {name: self.headers[name] for name in PASSED_ON if name in self.headers})
            answer = connection.getresponse()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type"))
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()

    forwarder = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forwarder)
    threading.Thread(target=forwarder.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{forwarder.server_port}"
