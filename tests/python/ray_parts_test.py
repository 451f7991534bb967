# SPDX-License-Identifier: MIT
"""The parts of snapkv.ray that need no cluster: which replica has read a prompt, errors in each
API's form, documents on storage (a folder, and S3 where moto is installed), and what can be known
of packaging/ray without machines to run it on.

usage: ray_parts_test.py MODEL   (skipped where Ray is not installed)
"""

import copy
import json
import os
import re
import sys
import tempfile
import unittest

MODEL = sys.argv.pop(1)
try:
    import jsonschema
    import numpy
    import ray
    import yaml
    from ray import serve
    from ray.autoscaler._private.util import prepare_config, validate_config
    from ray.serve.schema import ServeDeploySchema
except ImportError:
    print("skipped: ray[serve] is not installed")
    sys.exit(77)

import snapkv.ray
from snapkv._server import Server
from snapkv.ray import _replica, _requests, _serving
from snapkv.ray._documents import Storage
from snapkv.ray.routing import Beginnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Packaging(unittest.TestCase):
    """packaging/ray: the launcher's file, KubeRay's, and the image that the latter names."""

    def setUp(self):
        self.cluster = yaml.safe_load(read("packaging", "ray", "cluster.yaml"))
        self.service = yaml.safe_load(read("packaging", "ray", "kuberay.yaml"))["spec"]
        self.config = yaml.safe_load(self.service["serveConfigV2"])
        self.arguments = self.config["applications"][0]["args"]
        self.nodes = self.service["rayClusterConfig"]
        self.image = re.search(r"^FROM rayproject/ray:([0-9.]+)-py(\d)(\d+)-cpu$",
                               read("packaging", "ray", "Dockerfile"), re.MULTILINE)

    def pods(self):
        groups = [self.nodes["headGroupSpec"], *self.nodes["workerGroupSpecs"]]
        return [group["template"]["spec"] for group in groups]

    def test_rays_launcher_accepts_its_file(self):
        path = os.path.join(os.path.dirname(ray.__file__), "autoscaler", "ray-schema.json")
        with open(path, encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.validate(self.cluster, schema)
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate({**self.cluster, "workers": 2}, schema)
        whole = prepare_config(copy.deepcopy(self.cluster))
        validate_config(whole)
        self.assertEqual(whole["max_workers"], len(self.cluster["provider"]["worker_ips"]))
        # without Ray's token, whoever reaches the port of a node runs code there
        for commands in (whole["head_start_ray_commands"], whole["worker_start_ray_commands"]):
            self.assertIn("RAY_AUTH_MODE=token", commands[-1])
        self.assertEqual(self.nodes["authOptions"], {"mode": "token"})

    def test_serve_accepts_kuberays_config_and_builds_its_application(self):
        config = ServeDeploySchema(**self.config)
        module, name = config.applications[0].import_path.split(":")
        self.assertIs(getattr(sys.modules[module], name), snapkv.ray.build)
        self.assertIsInstance(snapkv.ray.build(self.arguments), serve.Application)

    def test_the_replicas_fit_into_the_pods(self):
        group, = self.nodes["workerGroupSpecs"]
        a_node = int(group["rayStartParams"]["num-cpus"]) // self.arguments["cpus"]
        wanted = self.arguments["replicas"] + self.arguments["prefill_replicas"]
        self.assertGreaterEqual(group["replicas"] * a_node, wanted)

    def test_every_path_is_on_a_volume_and_the_port_is_the_services(self):
        for pod in self.pods():
            container, = pod["containers"]
            mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
            self.assertEqual({v["name"] for v in pod["volumes"]},
                             {m["name"] for m in mounts.values()})
            for name in ("model", "documents", "api_key_file"):
                self.assertTrue(any(self.arguments[name].startswith(m) for m in mounts), name)
            self.assertNotIn("readOnly", mounts[self.arguments["documents"]])
        ports = {p["name"]: p["containerPort"] for p in self.pods()[0]["containers"][0]["ports"]}
        self.assertEqual(ports["serve"], self.config["http_options"]["port"])

    def test_the_image_has_the_ray_that_the_manifest_says_and_the_package_needs(self):
        self.assertEqual(self.nodes["rayVersion"], self.image[1])
        needed = re.search(r'"ray\[serve,data\]>=([0-9.]+)"', read("pyproject.toml"))[1]
        def numbers(version):
            return [int(n) for n in version.split(".")]
        self.assertGreaterEqual(numbers(self.image[1]), numbers(needed))
        python = re.search(r'requires-python = ">=([0-9.]+)"', read("pyproject.toml"))[1]
        self.assertGreaterEqual([int(self.image[2]), int(self.image[3])], numbers(python))

    def test_the_server_has_the_options_of_the_manifest_and_asks_for_a_key(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as keys:
            keys.write("correct-horse-battery-staple\n")
            keys.flush()
            own = {"replicas", "prefill_replicas", "ingress_replicas", "documents"}  # of app()
            given = {k: v for k, v in self.arguments.items() if k not in own}
            given.update(model=MODEL, cpus=1, kv_memory="64M", api_key_file=keys.name)
            with Server(_serving.words(**given)) as server:
                self.assertEqual(server.request("GET", "/props")[0], 401)
                key = {"Authorization": "Bearer correct-horse-battery-staple"}
                self.assertEqual(server.request("GET", "/props", headers=key)[0], 200)


if __name__ == "__main__":
    unittest.main()
