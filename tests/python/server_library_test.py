# SPDX-License-Identifier: MIT
"""libsnapkv_server.so through snapkv._server: answers, caches that are lent, prompts that another
server has read, errors, the end.

usage: server_library_test.py MODEL   (SNAPKV_SERVER_LIBRARY names the library)
"""

import json
import os
import sys
import tempfile
import threading
import time
import unittest

try:
    import numpy
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)

import snapkv
from snapkv._server import Server

MODEL = sys.argv.pop(1)
FILLER = "The grass is green and the sky is blue. " * 40
TEXT = FILLER + "The special number of Paris is 48213. " + FILLER
ASKED = "The special number of Paris is"
WORDS = ["-m", MODEL, "--threads", "1", "--kv-memory", "128M", "--kv-budget", "128",
         "--chat-template", "chatml"]
COMPLETION = {"prompt": f"{TEXT}\n{ASKED}", "max_tokens": 8, "temperature": 0}


def aligned(path):
    """A file's bytes, beginning at a multiple of 64 as in Ray's object store."""
    data = numpy.fromfile(path, numpy.uint8)
    memory = numpy.zeros(data.nbytes + 64, numpy.uint8)
    begin = -memory.ctypes.data % 64
    memory[begin:begin + data.nbytes] = data
    return memory[begin:begin + data.nbytes]


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.reader = Server([*WORDS, "--snapshot-dir", cls.folder.name])
        cls.writer = Server(WORDS)

    @classmethod
    def tearDownClass(cls):
        cls.reader.stop()
        cls.writer.stop()
        cls.folder.cleanup()

    def call(self, server, path, body, status=200):
        got, answer = server.request("POST", path, body)
        self.assertEqual(got, status, answer)
        return json.loads(answer)

    def read(self, body, name, path="/v1/completions"):
        self.call(self.reader, f"/v1/kv/prompts?path={path}&name={name}", body)
        return aligned(os.path.join(self.folder.name, f"{name}.prompt"))

    def wait_for_nothing_lent(self):
        for _ in range(200):
            if Server.n_lent() == 0:
                return
            time.sleep(0.01)
        self.fail(f"{Server.n_lent()} buffers are still lent")

    def test_it_answers_at_its_socket_which_others_cannot_use(self):
        self.assertEqual(self.writer.request("GET", "/health"), (200, b'{"status":"ok"}'))
        self.assertEqual(os.stat(self.writer.socket).st_mode & 0o077, 0)
        self.assertIn("48213", self.call(self.writer, "/v1/completions",
                                         COMPLETION)["choices"][0]["text"])

    def test_streams_come_to_their_end(self):
        status, answer = self.writer.request("POST", "/v1/completions",
                                             {**COMPLETION, "stream": True})
        self.assertEqual(status, 200)
        self.assertTrue(answer.rstrip().endswith(b"data: [DONE]"), answer[-200:])

    def test_a_prompt_that_another_server_has_read_is_answered_alike(self):
        whole = self.call(self.writer, "/v1/completions", COMPLETION)
        self.writer.lend("one", self.read(COMPLETION, "one"))
        for n in (1, 2):
            split = self.call(self.writer, "/v1/completions",
                              {**COMPLETION, "n": n, "kv": {"read": "one"}})
            self.assertEqual([c["text"] for c in split["choices"]],
                             [whole["choices"][0]["text"]] * n)
            details = split["usage"]["prompt_tokens_details"]
            self.assertEqual(details["cached_tokens"], split["usage"]["prompt_tokens"])
        self.writer.withdraw("one")
        self.wait_for_nothing_lent()
        self.assertIn("no prompt 'one'", self.call(
            self.writer, "/v1/completions", {**COMPLETION, "kv": {"read": "one"}},
            404)["error"]["message"])

    def test_chats_of_every_api_can_be_read_elsewhere(self):
        messages = {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 4,
                    "temperature": 0}
        for i, (path, body) in enumerate((
                ("/v1/chat/completions", messages), ("/v1/messages", messages),
                ("/v1/responses", {"input": TEXT, "max_output_tokens": 4}),
                ("/api/chat", {**messages, "stream": False}),
                ("/api/generate", {"prompt": TEXT, "stream": False}))):
            with self.subTest(path=path):
                self.writer.lend(f"api{i}", self.read(body, f"api{i}", path))
                self.call(self.writer, path, {**body, "kv": {"read": f"api{i}"}})
                self.writer.withdraw(f"api{i}")
        self.wait_for_nothing_lent()

    def test_another_prompt_is_refused(self):
        self.writer.lend("two", self.read(COMPLETION, "two"))
        longer = {**COMPLETION, "prompt": COMPLETION["prompt"] + " not", "kv": {"read": "two"}}
        other = {**COMPLETION, "prompt": COMPLETION["prompt"].replace("48213", "48231"),
                 "kv": {"read": "two"}}
        for body, words in ((longer, "tokens, and the request's prompt"),
                            (other, "another prompt than the request's")):
            message = self.call(self.writer, "/v1/completions", body, 400)["error"]["message"]
            self.assertIn(words, message)
        self.writer.withdraw("two")

    def test_what_cannot_be_read_for_others_is_refused(self):
        for body, words in (({**COMPLETION, "prompt": ["a", "b"]}, "others beside it"),
                            ({**COMPLETION, "echo": True, "logprobs": 1}, "probabilities")):
            answer = self.call(self.reader, "/v1/kv/prompts?path=/v1/completions&name=x", body, 400)
            self.assertIn(words, answer["error"]["message"])
            self.assertEqual(answer["error"]["code"], "not_supported")
        self.call(self.reader, "/v1/kv/prompts?path=/v1/models&name=x", COMPLETION, 400)
        self.call(self.reader, "/v1/kv/prompts?path=/v1/completions&name=../x", COMPLETION, 400)

    def test_a_document_is_read_where_it_is(self):
        for full in (True, False):
            with self.subTest(keep_full=full):
                self.call(self.reader, "/v1/kv/snapshots",
                          {"name": "book", "text": TEXT, "keep_full": full})
                question = {"messages": [{"role": "user", "content": ASKED}], "max_tokens": 8,
                            "temperature": 0, "kv": {"snapshot": "book"}}
                expected = self.call(self.reader, "/v1/chat/completions", question)
                data = aligned(os.path.join(self.folder.name, "book.kv"))
                self.writer.lend("book", data)
                answer = self.call(self.writer, "/v1/chat/completions", question)
                self.assertEqual(answer["choices"][0]["message"],
                                 expected["choices"][0]["message"])
                self.writer.withdraw("book")
        self.wait_for_nothing_lent()

    def test_a_lent_buffer_stays_while_a_request_uses_it(self):
        body = {**COMPLETION, "max_tokens": 400, "ignore_eos": True}
        self.writer.lend("long", self.read(body, "long"))
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            self.writer.request("POST", "/v1/completions", {**body, "kv": {"read": "long"}})))
        thread.start()
        time.sleep(0.2)
        self.writer.withdraw("long")
        thread.join()
        self.assertEqual(answers[0][0], 200, answers[0][1])
        self.wait_for_nothing_lent()

    def test_damaged_bytes_are_refused_and_not_kept(self):
        data = self.read(COMPLETION, "damaged")
        for n in (0, 10, data.nbytes // 2, data.nbytes - 1):
            with self.assertRaises(snapkv.ModelError):
                self.writer.lend("damaged", data[:n])
        data[data.nbytes // 2] ^= 1
        with self.assertRaises(snapkv.ModelError):
            self.writer.lend("damaged", data)
        with self.assertRaisesRegex(snapkv.UsageError, "a multiple of 64"):
            self.writer.lend("damaged", data[1:])
        with self.assertRaisesRegex(snapkv.UsageError, "nothing was lent as 'damaged'"):
            self.writer.withdraw("damaged")
        self.wait_for_nothing_lent()

    def test_a_server_that_cannot_start_says_why(self):
        for words, kind, message in (
                (["-m", "/no/such.gguf"], snapkv.Error, "/no/such.gguf"),
                ([*WORDS, "--kv-budget", "0"], snapkv.UsageError, "--kv-budget"),
                ([*WORDS, "--no-such-option"], snapkv.UsageError, "--no-such-option"),
                (["-m", MODEL, "--kv-memory", "1K"], snapkv.OutOfMemoryError, "--kv-memory"),
                (["--help"], snapkv.UsageError, "")):
            with self.assertRaisesRegex(kind, message):
                Server(words)
        with self.assertRaisesRegex(snapkv.UsageError, "at most 107 are possible"):
            deep = os.path.join(self.folder.name, "f" * 100)
            os.mkdir(deep)
            Server(WORDS, folder=deep)

    def test_a_host_beyond_this_machine_may_have_any_name(self):
        status, _ = self.writer.request("GET", "/v1/models", headers={"Host": "example.org"})
        self.assertEqual(status, 403)
        with Server([*WORDS, "--host", "0.0.0.0"]) as open_to_all:
            status, _ = open_to_all.request("GET", "/v1/models", headers={"Host": "example.org"})
            self.assertEqual(status, 200)

    def test_the_end_removes_its_socket(self):
        server = Server(WORDS)
        path = server.socket
        server.stop(5)
        server.stop()
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
