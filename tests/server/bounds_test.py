#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bounds_test.py PROGRAM MODEL SANITIZER: what `snapkv serve` takes and how it answers while clients send too
much, or too slowly. Talks to 127.0.0.1 only. SANITIZER: SNAPKV_SANITIZE of the build.
"""
import http.client
import json
import shutil
import socket
import sys
import tempfile
import threading
import time
import unittest

import server_process

PROGRAM, MODEL, SANITIZER = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
MIB = 1 << 20


class Bounds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *options):
        server = server_process.Server(PROGRAM, MODEL, self.folder, "--parallel", "8", "--max-queue", "8",
                                       *options)
        self.addCleanup(server.__exit__)
        return server

    @staticmethod
    def send(server, path, body, statuses):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        try:
            connection.request("POST", path, body)
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        except (OSError, http.client.HTTPException) as e:
            statuses.append(repr(e))
        connection.close()

    def burst(self, server, n, path, body):
        """Sends n bodies at a time; returns their statuses and the most memory meanwhile."""
        statuses = []
        threads = [threading.Thread(target=self.send, args=(server, path, body, statuses))
                   for _ in range(n)]
        for thread in threads:
            thread.start()
        peak = 0
        while any(thread.is_alive() for thread in threads):
            peak = max(peak, server.rss())
            time.sleep(0.02)
        return statuses, peak

    @unittest.skipIf(SANITIZER not in ("", "OFF"), "a sanitizer keeps memory that is freed")
    def test_bursts_of_large_bodies_take_what_was_promised(self):
        server = self.start("--kv-memory", "64M", "--body-memory", "128M")
        self.assertIn("--body-memory: 128.0 MiB", server.errors)
        self.assertEqual(server.complete("Some words.")[0], 200)
        before = server.rss()
        allowed = 1.2 * (before + (64 + 128) * MIB)
        words = "The sky over the valley was clear. "
        chat = json.dumps({"messages": [{"role": "user", "content": words * (2 * MIB // len(words))}]})
        tokens = json.dumps({"prompt": [7] * 600_000})
        parts = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 60_000}]})
        documents = words * (4 * MIB // len(words))
        for n, path, body in ((40, "/v1/chat/completions", chat), (20, "/v1/completions", tokens),
                              (20, "/v1/chat/completions", parts),
                              (6, "/v1/documents/text?name=a.txt", documents)):
            statuses, peak = self.burst(server, n, path, body)
            self.assertTrue(set(statuses) <= {200, 400, 429, 503}, statuses)
            self.assertLess(peak, allowed, f"{n} bodies of {len(body)} bytes to {path}")
        statuses, peak = self.burst(server, 8, "/v1/completions", b" " * (40 * MIB))
        self.assertLess(peak, allowed)
        server.wait_until(lambda: server.n_threads() < 12)
        server.wait_until(lambda: server.rss() < before + 32 * MIB)
        self.assertEqual(server.complete("Some words.")[0], 200)

    def test_health_is_answered_while_bodies_come_byte_by_byte(self):
        server = self.start()
        clients = []
        for _ in range(600):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            self.addCleanup(client.close)
            clients.append(client)
            client.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n")
        for _ in range(3):
            for client in clients:
                try:
                    client.sendall(b" ")
                except OSError:  # refused
                    pass
            for path in ("/health", "/metrics"):
                begin = time.monotonic()
                connection = server.connect()
                connection.request("GET", path)
                self.assertEqual(connection.getresponse().status, 200)
                self.assertLess(time.monotonic() - begin, 5, path)
            time.sleep(0.5)
        server.wait_until(lambda: server.complete("Some words.")[0] == 200)  # the slow ones are ended


if __name__ == "__main__":
    unittest.main(warnings="ignore")
