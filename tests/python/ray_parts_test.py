# SPDX-License-Identifier: MIT
"""The parts of snapkv.ray that need no cluster: which replica has read a prompt, errors in each
API's form, documents on storage (a folder, and S3 where moto is installed).

usage: ray_parts_test.py   (skipped where Ray is not installed)
"""

import json
import os
import sys
import tempfile
import unittest

try:
    import numpy
    import ray  # noqa: F401
    from ray import serve  # noqa: F401
except ImportError:
    print("skipped: ray[serve] is not installed")
    sys.exit(77)

import snapkv.ray
from snapkv.ray import _replica, _requests, _serving
from snapkv.ray._documents import Storage
from snapkv.ray.routing import Beginnings

CHAT = "/v1/chat/completions"


def conversation(*texts, system="You are a sailor. " * 60):
    roles = ["user", "assistant"] * len(texts)
    return {"messages": [{"role": "system", "content": system},
                         *({"role": r, "content": t} for r, t in zip(roles, texts))]}


class Pieces(unittest.TestCase):
    def test_a_conversation_that_goes_on_begins_alike(self):
        one = conversation("Where are we? " * 80)
        two = conversation("Where are we? " * 80, "At sea. " * 80, "And now?" * 80)
        first, second = _requests.pieces(CHAT, one), _requests.pieces(CHAT, two)
        self.assertGreater(len(first), 3)
        self.assertEqual(second[:len(first)], first)
        self.assertGreater(len(second), len(first))

    def test_other_conversations_do_not(self):
        one = _requests.pieces(CHAT, conversation("Where are we? " * 80))
        other = _requests.pieces(CHAT, conversation("Where are we? " * 80, system="Be brief. " * 80))
        self.assertFalse(set(one) & set(other))

    def test_tools_and_documents_are_part_of_the_beginning(self):
        one = conversation("Where are we? " * 80)
        for more in ({"tools": [{"type": "function"}]}, {"kv": {"snapshot": "book"}}):
            self.assertFalse(set(_requests.pieces(CHAT, one)) &
                             set(_requests.pieces(CHAT, {**one, **more})))

    def test_every_api_has_pieces_and_bad_bodies_have_none(self):
        text = "word " * 500
        for path, body in (("/v1/completions", {"prompt": text}),
                           ("/v1/completions", {"prompt": [1, 2] * 2000}),
                           ("/v1/responses", {"input": text}), ("/v1/responses", {
                               "input": [{"role": "user", "content": text}]}),
                           ("/v1/messages", {"system": text, "messages": []}),
                           ("/api/chat", conversation(text)), ("/api/generate", {"prompt": text})):
            self.assertGreater(len(_requests.pieces(path, body)), 2, path)
        self.assertEqual(_requests.pieces("/v1/models", {"prompt": text}), [])
        for body in (b"", b"[1]", b"{no", b"\xff"):
            self.assertEqual(_requests.pieces(CHAT, _requests.parse(body)), [])
        self.assertIsNone(_requests.snapshot({"kv": "text"}))

    def test_errors_have_the_form_of_their_api(self):
        self.assertEqual(_requests.error(CHAT, "gone")["error"]["message"], "gone")
        self.assertEqual(_requests.error("/v1/messages", "gone")["type"], "error")
        self.assertEqual(_requests.error("/api/chat", "gone"), {"error": "gone"})
        event = _requests.error_event(CHAT, "text/event-stream", "gone").decode()
        self.assertTrue(event.startswith("event: error\ndata: {") and event.endswith("\n\n"))
        line = _requests.error_event("/api/chat", "application/x-ndjson", "gone")
        self.assertEqual(json.loads(line), {"error": "gone"})


class Routes(unittest.TestCase):
    def test_the_longest_beginning_wins(self):
        known = Beginnings()
        known.add([b"1", b"2"], "a")
        known.add([b"1", b"2", b"3"], "b")
        self.assertEqual(known.find([b"1", b"2", b"3", b"4"], {"a", "b"}), ("b", 3))
        self.assertEqual(known.find([b"1", b"2", b"3", b"4"], {"a"}), ("a", 2))
        self.assertEqual(known.find([b"2"], {"b"})[0], "b")
        self.assertEqual(known.find([b"5"], {"a", "b"}), (None, 0))
        self.assertEqual(known.find([], {"a", "b"}), (None, 0))

    def test_a_replica_that_has_gone_is_forgotten(self):
        known = Beginnings()
        known.add([b"1", b"2"], "a")
        known.add([b"1"], "b")
        known.remove("a")
        self.assertEqual(known.find([b"1", b"2"], {"a", "b"}), ("b", 1))

    def test_memory_is_bounded_and_the_oldest_goes_first(self):
        known = Beginnings(most=100)
        known.add([bytes([i]) for i in range(100)], "a")
        known.find([bytes([0])], {"a"})
        known.add([b"new"], "a")
        self.assertEqual(known.find([bytes([0])], {"a"}), ("a", 1))
        self.assertEqual(known.find([bytes([1])], {"a"}), (None, 0))


class Stored:
    """What every storage does; ``self.storage`` is one."""

    DATA = numpy.arange(1000, dtype=numpy.uint8)

    def test_a_document_is_found_by_any_of_its_names_until_all_are_gone(self):
        facts = {"digest": "d1", "entry": {"tokens": 5}}
        self.assertFalse(self.storage.has("m", "d1"))
        self.storage.write("m", "d1", self.DATA)
        for name in ("two", "one"):
            self.storage.point("m", name, facts)
        self.assertEqual(self.storage.names("m"), ["one", "two"])
        self.assertEqual(self.storage.find("m", "one.kv"), facts)
        numpy.testing.assert_array_equal(self.storage.read("m", "d1"), self.DATA)
        self.assertTrue(self.storage.remove("m", "one"))
        self.assertTrue(self.storage.has("m", "d1"))
        self.assertIsNone(self.storage.find("m", "one"))
        self.assertTrue(self.storage.remove("m", "two"))
        self.assertFalse(self.storage.has("m", "d1"))
        self.assertFalse(self.storage.remove("m", "two"))
        self.assertEqual(self.storage.names("m"), [])

    def test_models_have_documents_of_their_own(self):
        self.storage.write("m1", "d", self.DATA)
        self.storage.point("m1", "book", {"digest": "d"})
        self.assertIsNone(self.storage.find("m2", "book"))

    def test_names_lead_nowhere_else(self):
        for name in ("../../m1/names/book", "a/b", "", ".hidden", "x" * 200):
            self.assertIsNone(self.storage.find("m1", name))
            self.assertFalse(self.storage.remove("m1", name))


class Folder(Stored, unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.storage = Storage(self.folder.name)

    def test_no_half_of_a_document_stays(self):
        self.storage.write("m", "d", self.DATA)
        self.assertEqual(os.listdir(os.path.join(self.folder.name, "m", "documents")), ["d.kv"])


try:
    import boto3
    from moto.server import ThreadedMotoServer

    class S3(Stored, unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test",
                              AWS_DEFAULT_REGION="us-east-1")
            cls.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
            cls.server.start()
            cls.url = "http://%s:%d" % cls.server.get_host_and_port()

        @classmethod
        def tearDownClass(cls):
            cls.server.stop()

        def setUp(self):
            client = boto3.client("s3", endpoint_url=self.url)
            name = self.id().rsplit("_", 1)[-1]
            client.create_bucket(Bucket=f"snapkv-{name}")
            self.storage = Storage(f"s3://snapkv-{name}/documents",
                                   {"client_kwargs": {"endpoint_url": self.url}})
except ImportError:
    print("without S3: moto[server] and s3fs are not installed")


class Folders(unittest.TestCase):
    def test_what_killed_replicas_left_is_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            gone, here = "snapkv-replica-99999999-a_1", f"snapkv-replica-{os.getpid()}-b_2"
            for name in (gone, here, "snapkv-other"):
                os.makedirs(os.path.join(folder, name, "files"))
            _replica.remove_abandoned(folder)
            self.assertEqual(sorted(os.listdir(folder)), sorted([here, "snapkv-other"]))


class Applications(unittest.TestCase):
    def test_a_config_of_serve_builds_one(self):
        application = snapkv.ray.build({"model": "/models/model.gguf", "replicas": 2,
                                        "prefill_replicas": 1, "documents": "/documents",
                                        "kv_budget": 512, "cpus": 4})
        self.assertIsInstance(application, serve.Application)
        with self.assertRaisesRegex(snapkv.UsageError, "replicas is 0"):
            snapkv.ray.app("/models/model.gguf", replicas=0)

    def test_options_become_words_of_the_command(self):
        words = _serving.words("m.gguf", 2, kv_budget=512, kv_memory="4G", no_such=None)
        self.assertEqual(words, ["-m", "m.gguf", "--kv-budget", "512", "--kv-memory", "4G",
                                 "--threads", "2"])


if __name__ == "__main__":
    unittest.main()
