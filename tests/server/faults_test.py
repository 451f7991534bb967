#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""faults_test.py PROGRAM MODEL SANITIZER: `snapkv serve` when things go wrong around it: killed, files damaged,
folders gone, disks full, clients that vanish. Talks to 127.0.0.1 only. SANITIZER: SNAPKV_SANITIZE of
the build.
"""
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

import server_process

PROGRAM, MODEL, SANITIZER = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
FACT = "The secret number of Rome is 48213. "
DOCUMENT = "The sky over the valley was clear. " * 60 + FACT + "Nobody walked along the river. " * 60
QUESTION = "What is the secret number of Rome? The secret number of Rome is"


class Server(server_process.Server):
    def __init__(self, folder, *more, limits=()):
        super().__init__(PROGRAM, MODEL, folder, *more, limits=limits)

    def snapshot(self, name, **more):
        return self.request("POST", "/v1/kv/snapshots",
                            {"name": name, "text": DOCUMENT, **more})


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ask(self, server, name):
        status, answer = server.complete(QUESTION, kv={"snapshot": name})
        return status, answer["choices"][0]["text"] if status == 200 else answer["error"]

    def test_a_prompt_is_read_once_by_default(self):
        with Server(self.folder) as server:
            cached = []
            for _ in range(2):
                status, answer = server.complete(DOCUMENT + QUESTION)
                self.assertEqual(status, 200, answer)
                self.assertIn("48213", answer["choices"][0]["text"])
                cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
            self.assertEqual(cached[0], 0)
            self.assertGreater(cached[1], 500)

    def test_snapshots_survive_kill_9(self):
        with Server(self.folder) as server:
            self.assertEqual(server.snapshot("whole")[0], 200)
            self.assertEqual(server.snapshot("all", keep_full=True)[0], 200)
            for delay in (0.02, 0.1, 0.2):  # while a snapshot is made
                with Server(self.folder) as victim:
                    thread = threading.Thread(target=lambda: self.vanish(victim))
                    thread.start()
                    time.sleep(delay)
                    victim.process.kill()
                    thread.join()
        with Server(self.folder) as server:
            names = [each["name"] for each in server.request("GET", "/v1/kv/snapshots")[1]["data"]]
            self.assertTrue({"whole", "all"} <= set(names) <= {"whole", "all", "half"}, names)
            for name in names:
                status, text = self.ask(server, name)
                self.assertEqual(status, 200, text)
                self.assertIn("48213", text)

    @staticmethod
    def vanish(server):
        try:
            server.snapshot("half")
        except (OSError, http.client.HTTPException):
            pass

    def test_damaged_and_foreign_snapshots_are_refused(self):
        with Server(self.folder) as server:
            server.snapshot("a")
            server.snapshot("b", keep_full=True)
            for name in "ab":
                path = os.path.join(self.folder, name + ".kv")
                self.assertEqual(self.ask(server, name)[0], 200)  # the server keeps it open
                with open(path, "rb") as f:
                    whole = f.read()
                for damaged in (whole[:len(whole) // 2], whole[:99] + b"!" + whole[100:], b"none",
                                whole[:len(whole) // 2] + b"!" + whole[len(whole) // 2 + 1:]):
                    with open(path, "wb") as f:
                        f.write(damaged)
                    status, error = self.ask(server, name)
                    self.assertEqual(status // 100, 4, (name, error))
                    self.assertIn(name + ".kv", str(error))
                    self.assertNotIn(self.folder, str(error))
                with open(path, "wb") as f:
                    f.write(whole)
                self.assertEqual(self.ask(server, name)[0], 200)
                os.remove(path)
                self.assertEqual(self.ask(server, name)[0], 404)
            self.assertEqual(server.complete("Some words.")[0], 200)  # the server goes on

    def test_foreign_files_are_refused_without_what_is_in_them(self):
        with Server(self.folder) as server:
            os.mkfifo(os.path.join(self.folder, "pipe.kv"))
            os.mkdir(os.path.join(self.folder, "folder.kv"))
            with open(os.path.join(self.folder, "text.kv"), "w") as f:
                f.write("top-secret " * 1000)
            for name in ("pipe", "folder", "text"):
                status, error = self.ask(server, name)
                self.assertEqual(status, 400, (name, error))
                self.assertIn(name + ".kv", error["message"])
                self.assertNotIn("secret", error["message"])
                self.assertNotIn(self.folder, error["message"])
            for name in ("pipe.kv", "text.kv"):
                os.rename(os.path.join(self.folder, name), os.path.join(self.folder, name[:-3]))
                status, answer = server.request("POST", "/slots/0?action=restore", {"filename": name[:-3]})
                self.assertEqual(status, 400, answer)
                self.assertNotIn("secret", str(answer))
                self.assertNotIn(self.folder, str(answer))

    def test_what_a_killed_server_left_is_removed(self):
        for name in ("half.kv.tmp-99999-0", "slot.tmp-1-3", "whole.kv", "notes.txt"):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write("x")
        with Server(self.folder) as server:
            self.assertEqual(sorted(os.listdir(self.folder)), ["notes.txt", "whole.kv"])
            self.assertIn("removed 2 unfinished files", server.errors)

    def test_too_little_memory_for_any_request_is_an_error_at_the_start(self):
        with self.assertRaises(AssertionError) as caught:
            Server(self.folder, "--kv-memory", "16K")
        self.assertIn("--kv-memory: the shortest request needs ", str(caught.exception))

    def test_a_folder_that_goes_and_comes_back(self):
        with Server(self.folder) as server:
            shutil.rmtree(self.folder)
            status, error = server.snapshot("a")
            self.assertGreaterEqual(status, 400, error)
            self.assertGreaterEqual(server.request("GET", "/v1/kv/snapshots")[0], 400)
            os.mkdir(self.folder)
            self.assertEqual(server.snapshot("a")[0], 200)

    def test_a_full_disk_leaves_no_snapshot(self):
        with Server(self.folder, limits=[(resource.RLIMIT_FSIZE, 100_000)]) as server:
            status, error = server.snapshot("a")
            self.assertGreaterEqual(status, 400, error)
            self.assertEqual(os.listdir(self.folder), [])
            self.assertEqual(server.complete("Some words.")[0], 200)

    def test_clients_that_vanish_free_what_they_had(self):
        with Server(self.folder) as server:
            for stream in (True, False):
                for _ in range(4):
                    body = json.dumps({"prompt": DOCUMENT, "max_tokens": 5000, "ignore_eos": True,
                                       "stream": stream})
                    client = socket.create_connection(("127.0.0.1", server.port))
                    client.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                                   f"{len(body)}\r\n\r\n{body}".encode())
                    time.sleep(0.05)
                    client.close()
            server.wait_until(lambda: server.metric('snapkv_sessions{state="answering"}') == 0
                              and server.metric('snapkv_sessions{state="reading"}') == 0
                              and server.metric('snapkv_sessions{state="waiting"}') == 0)
            self.assertEqual(server.metric('snapkv_kv_bytes{state="running"}'), 0)
            self.assertEqual(server.metric("snapkv_requests_cancelled_total"), 8)

    @unittest.skipIf(SANITIZER not in ("", "OFF"), "a sanitizer needs terabytes of address space")
    def test_threads_that_are_refused_end_no_server(self):
        # This has the effect of a limit on processes but also works as root: the stack of every
        # thread takes a part of the address space.
        stack = 2 << 30
        with Server(self.folder, limits=[(resource.RLIMIT_STACK, stack),
                                         (resource.RLIMIT_AS, 20 * stack)]) as server:
            refused, held = 0, []
            for _ in range(30):
                client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
                held.append(client)
                client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = client.recv(1000)
                self.assertIn(answer.split(b"\r\n")[0], (b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable"))
                refused += b" 503 " in answer
            self.assertGreater(refused, 5)
            self.assertLess(refused, 30)
            for client in held:
                client.close()
            server.wait_until(lambda: self.healthy(server))
            self.assertEqual(server.complete("Some words.")[0], 200)

    @staticmethod
    def healthy(server):
        try:
            return server.request("GET", "/health")[0] == 200
        except (OSError, ValueError):
            return False

    @unittest.skipIf(SANITIZER not in ("", "OFF"), "a sanitizer needs terabytes of address space")
    def test_a_thread_that_is_refused_at_the_start_is_an_error(self):
        for n in (1, 2, 3):  # refuses the threads of the connections or of the scheduler
            stack = 16 << 30
            with self.assertRaises(AssertionError) as caught:
                Server(self.folder, limits=[(resource.RLIMIT_STACK, stack),
                                            (resource.RLIMIT_AS, n * stack)])
            self.assertIn("no more threads", str(caught.exception))

    def test_half_requests_hold_up_no_end(self):
        with Server(self.folder) as server:
            clients = []
            for text in (b"POST /tokenize HTTP/1.1\r\n", b"POST /tokenize HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", b""):
                clients.append(socket.create_connection(("127.0.0.1", server.port)))
                clients[-1].sendall(text)
            time.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(10), 0)
            for client in clients:
                client.close()

    @unittest.skipIf(SANITIZER not in ("", "OFF"), "a sanitizer keeps memory that is freed")
    def test_memory_comes_back(self):
        with Server(self.folder, "--prefix-cache", "4M") as server:
            def rounds(n):
                for i in range(n):
                    threads = [threading.Thread(target=server.complete, args=(f"{i} {k} " + DOCUMENT,))
                               for k in range(4)]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()

            # On a busy machine the first rounds may not hold all four prompts in memory at once. A
            # leak of one prompt in ten is noticed, as each has 2.4 MiB of cache.
            rounds(6)
            before = server.rss()
            rounds(16)
            self.assertLess(server.rss(), before * 1.05 + (8 << 20))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
