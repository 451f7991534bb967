# SPDX-License-Identifier: MIT
"""snapkv.ray on a cluster of three nodes on this machine: answers equal one process's, documents
and answers survive what is killed, batches go on where they ended.

usage: ray_test.py FOLDER   (of `make models`; skipped without it, or where Ray is not installed)

SNAPKV_TEST_RAY=whole in the environment, as `make test-models` has it, runs all of it, with longer
loads, whose numbers are those of docs/machines.md. Without it, it takes two minutes on two cores.
"""

import json
import os
import sys
import tempfile
import time
import unittest

FOLDER = sys.argv.pop(1) if len(sys.argv) > 1 else ""
MODEL = os.path.join(FOLDER, "SmolLM2-135M-Instruct.Q4_1.gguf")
try:
    import ray_cluster as on
    from ray import serve
except ImportError:
    print("skipped: ray[serve,data] is not installed")
    sys.exit(77)
if not FOLDER or not os.path.exists(MODEL):
    print("skipped: no folder of real models (make models)")
    sys.exit(77)

import yaml  # noqa: E402  (Ray needs it)
from ray.serve.context import _get_global_client  # noqa: E402
from ray.serve.schema import ServeDeploySchema  # noqa: E402

import snapkv.eval  # noqa: E402
import snapkv.ray  # noqa: E402
from snapkv._server import Server  # noqa: E402

WHOLE = os.environ.get("SNAPKV_TEST_RAY") == "whole"
only_in_whole = unittest.skipUnless(WHOLE, "SNAPKV_TEST_RAY=whole runs it")
MANIFEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "ray",
                        "kuberay.yaml")
#: Seconds after which what was killed must be there again. A busy machine takes that long to start
#: processes; on an idle one it is a few seconds (docs/machines.md).
MOST_SECONDS = 90
OPTIONS = {"kv_budget": 128, "kv_memory": "300M", "ctx_size": 8192}
WORDS = ["-m", MODEL, "--threads", "1", "--kv-budget", "128", "--kv-memory", "300M",
         "--ctx-size", "8192"]
FILLER = "The ship sails along the coast, and the sea is calm today. "


def chat(text, max_tokens=12, **more):
    return {"messages": [{"role": "user", "content": text}], "max_tokens": max_tokens,
            "temperature": 0, **more}


def setUpModule():
    global NODES
    NODES = on.Nodes(2)


def tearDownModule():
    NODES.stop()


def deploy(ingresses, **args):
    """Deploys the application of packaging/ray/kuberay.yaml with other arguments, as Serve does.

    With the same arguments only the number of ingresses changes, and nothing starts anew."""
    with open(MANIFEST, encoding="utf-8") as file:
        config = yaml.safe_load(yaml.safe_load(file)["spec"]["serveConfigV2"])
    del config["http_options"], config["proxy_location"]  # Serve runs already
    application, = config["applications"]
    for name in ("host", "api_key_file"):
        del application["args"][name]
    application["args"].update(args)
    application["deployments"] = [{"name": "ingress", "num_replicas": ingresses}]
    _get_global_client().deploy_apps(ServeDeploySchema(**config))
    end = time.monotonic() + 300
    while (status := serve.status().applications["snapkv"]).status != "RUNNING":
        if status.status == "DEPLOY_FAILED" or time.monotonic() > end:
            raise RuntimeError(f"{status.status}: {status.message}")
        time.sleep(0.2)


class OnThreeNodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.documents = tempfile.TemporaryDirectory()
        cls.alone = Server([*WORDS, "--snapshot-dir", cls.documents.name])
        cls.nodes = NODES
        cls.port = cls.nodes.port
        cls.shared = os.path.join(cls.documents.name, "shared")
        cls.arguments = {"model": MODEL, "replicas": 2, "prefill_replicas": 1, "cpus": 1,
                         "documents": cls.shared, "read_from": 3000, **OPTIONS}
        # each ingress knows only where it has sent requests itself, so one until they are killed
        deploy(1, **cls.arguments)

    @classmethod
    def tearDownClass(cls):
        serve.delete("snapkv")
        cls.alone.stop()
        cls.documents.cleanup()

    def by_one(self, body, path="/v1/chat/completions"):
        status, answer = self.alone.request("POST", path, body)
        self.assertEqual(status, 200, answer)
        return json.loads(answer)

    def metric(self, name):
        _, text, _ = on.request(self.port, "GET", "/metrics")
        return {line.split("replica=")[1].split('"')[1]: float(line.rsplit(" ", 1)[1])
                for line in text.decode().splitlines() if line.startswith(f"{name}{{")}

    # --- serving
    def test_1_answers_are_those_of_one_process(self):
        for text in ("Why is the sky blue?", "Name three colours. " * 20):
            self.assertEqual(on.text_of(on.ask(self.port, chat(text))),
                             on.text_of(self.by_one(chat(text))))
        kind, text = on.stream(self.port, chat("Why is the sky blue?"))
        self.assertEqual((kind, text), ("whole", on.text_of(self.by_one(chat(
            "Why is the sky blue?")))))
        message = {"max_tokens": 8, "temperature": 0, "model": "x",
                   "messages": [{"role": "user", "content": "Hello"}]}
        self.assertEqual(on.ask(self.port, message, "/v1/messages")["content"],
                         self.by_one(message, "/v1/messages")["content"])

    def test_1_errors_are_the_servers_own(self):
        for body, path in (({"messages": "none"}, "/v1/chat/completions"),
                           ({"max_tokens": 5}, "/v1/messages"), ({}, "/v1/embeddings")):
            status, answer, _ = on.request(self.port, "POST", path, body)
            expected = self.alone.request("POST", path, body)
            self.assertEqual((status, json.loads(answer)), (expected[0], json.loads(expected[1])))

    def test_1_a_long_prompt_is_read_by_another_and_answered_alike(self):
        body = chat(FILLER * 120 + "Where does the ship sail?")
        before = self.metric("snapkv_prompt_tokens_total")
        answer = on.ask(self.port, body)
        after = self.metric("snapkv_prompt_tokens_total")
        self.assertEqual(on.text_of(answer), on.text_of(self.by_one(body)))
        for name, read in after.items():
            if name.startswith("reader"):
                self.assertGreater(read - before[name], 1000)
            else:
                self.assertEqual(read, before[name])
        kind, text = on.stream(self.port, body)
        self.assertEqual((kind, text), ("whole", on.text_of(answer)))

    def test_1_a_conversation_stays_with_its_replica(self):
        body = chat("Tell me about boats. " * 40, max_tokens=8)
        for turn in range(3):
            usage = (answer := on.ask(self.port, body))["usage"]
            body["messages"] += [answer["choices"][0]["message"],
                                 {"role": "user", "content": f"And number {turn}?"}]
            if turn > 0:
                new = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
                self.assertLess(new, 60)

    def test_1_a_client_that_leaves_ends_its_answer(self):
        before = sum(self.metric("snapkv_requests_cancelled_total").values())
        connection = on.http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", "/v1/chat/completions", json.dumps(
            chat("Count to a million.", max_tokens=4000, stream=True, ignore_eos=True)))
        connection.getresponse().read(300)
        connection.sock.close()
        connection.close()
        for _ in range(100):
            if sum(self.metric("snapkv_requests_cancelled_total").values()) > before:
                return
            time.sleep(0.1)
        self.fail("the answer was written to its end")

    # --- documents
    def test_2_any_replica_answers_from_any_document(self):
        text = FILLER * 40 + "The harbour's code is 48213. " + FILLER * 10
        status, answer, _ = on.request(self.port, "POST", "/v1/kv/snapshots",
                                       {"name": "log", "text": text})
        self.assertEqual(status, 200, answer)
        self.alone.request("POST", "/v1/kv/snapshots", {"name": "log", "text": text})
        body = chat("What is the harbour's code?", kv={"snapshot": "log"})
        expected = on.text_of(self.by_one(body))
        before = self.metric("snapkv_prompt_tokens_total")
        for i in range(6):  # other ends, so that no replica is preferred
            self.assertEqual(on.text_of(on.ask(self.port, {**body, "user": f"user {i}"})), expected)
        read = sum(self.metric("snapkv_prompt_tokens_total").values()) - sum(before.values())
        self.assertLess(read, 6 * 60)
        status, answer, _ = on.request(self.port, "POST", "/v1/kv/snapshots",
                                       {"name": "same", "text": text})
        self.assertEqual(status, 200)
        folder = os.path.join(self.shared, os.listdir(self.shared)[0], "documents")
        self.assertEqual(len(os.listdir(folder)), 1)  # the same content is there once
        _, answer, _ = on.request(self.port, "GET", "/v1/kv/snapshots")
        self.assertEqual([d["name"] for d in json.loads(answer)["data"]], ["log", "same"])

    def test_2_names_of_documents_lead_nowhere_else(self):
        for name in ("../log", ".log", "a/b"):
            status, _, _ = on.request(self.port, "POST", "/v1/chat/completions",
                                      chat("x", kv={"snapshot": name}))
            self.assertEqual(status, 400)
            status, _, _ = on.request(self.port, "POST", "/v1/kv/snapshots",
                                      {"name": name, "text": "x"})
            self.assertEqual(status, 400)

    # --- failures, after everything else
    def test_8_what_is_killed_comes_back_and_nothing_is_lost(self):
        bodies = [chat(f"Tell me about the number {i}.", max_tokens=40) for i in range(4)]
        expected = [on.text_of(self.by_one(body)) for body in bodies]
        document = chat("What is the harbour's code?", kv={"snapshot": "log"})
        known = on.text_of(self.by_one(document))
        deploy(2, **self.arguments)
        faults = [("a replica", lambda: on.kill("ServeReplica:snapkv:replica")),
                  ("the ingress", lambda: on.kill("ServeReplica:snapkv:ingress")),
                  ("the proxy", lambda: on.kill("ProxyActor")),
                  ("a node", lambda: self.nodes.cluster.remove_node(
                      on.node_with("ServeReplica:snapkv:replica", self.nodes.others),
                      allow_graceful=False))]
        with on.Load(self.port, bodies, expected) as load:
            begin = time.monotonic()
            for what, fail in faults:
                with self.subTest(killed=what):
                    if WHOLE:
                        time.sleep(4)
                    self.assertTrue(load.wait(6, begin), "too few answers before the fault")
                    killed = time.monotonic()
                    usual = load.rate(begin, killed)
                    counts = len(load.whole), len(load.errors)
                    fail()
                    self.assertTrue(load.wait(1, killed, MOST_SECONDS), "no answer came any more")
                    back = self.wait_for_rate(load, usual / 2, killed)
                    print(f"killed {what}: {len(load.whole) - counts[0]} answers whole, "
                          f"{len(load.errors) - counts[1]} errors that clients saw, half of the "
                          f"usual {usual:.1f} answers/s again after {back - killed:.1f} s",
                          flush=True)
                    self.assertLess(back - killed, MOST_SECONDS)
                    begin = time.monotonic()
        self.assertEqual(load.broken, [])
        answer = self.until_it_answers(document)
        self.assertEqual(on.text_of(answer), known)

    def wait_for_rate(self, load, rate, killed):
        """When there have been that many whole answers a second, for two seconds, of those asked
        for since ``killed``."""
        while (now := time.monotonic()) < killed + MOST_SECONDS + 2:
            if now > killed + 2 and load.rate(now - 2, now, killed) >= rate:
                return now - 2
            time.sleep(0.1)
        return now

    def until_it_answers(self, body):
        for _ in range(30):
            status, answer, _ = on.request(self.port, "POST", "/v1/chat/completions", body)
            if status == 200:
                return json.loads(answer)
            time.sleep(1)
        self.fail(answer)

    @only_in_whole
    def test_9_a_replica_that_does_not_fit_says_why(self):
        with self.assertRaises(RuntimeError):
            serve.run(snapkv.ray.app(MODEL, cpus=0, threads=1, kv_memory="1K"), name="small",
                      route_prefix="/small")
        found = serve.status().applications["small"].deployments["replica"].message
        self.assertIn("--kv-memory: the shortest request needs", found)
        serve.delete("small")


class Batches(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_each_document_is_read_once_and_a_job_goes_on(self):
        rows = [{"id": i, "text": f"{FILLER * 20} The code is {1000 + 37 * i}.",
                 "questions": ["What is the code?", "Where is the ship?"]} for i in range(6)]
        rows.append({"id": 6, "text": FILLER * 2000, "questions": ["Too long?"]})
        with open(self.path("rows.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        arguments = {"model": MODEL, "out": self.path("answers"), "rows_per_file": 2,
                     "fields": {"max_tokens": 8}, "kv_memory": 300 << 20, "ctx_size": 4096,
                     "kv_budget": 128}
        answered = {r["id"]: r for r in snapkv.ray.ask(self.path("rows.jsonl"),
                                                       **arguments).take_all()}
        self.assertEqual(sorted(answered), list(range(7)))
        model = snapkv.Model(MODEL, n_threads=1)
        for row in rows[:6]:
            got = answered[row["id"]]
            self.assertEqual(len(got["answers"]), 2)
            self.assertIsNone(got["error"])
            once = len(model.chat_tokens([{"role": "user", "content": row["text"]}]))
            self.assertLess(got["read_tokens"], once * 1.3)
        self.assertIn("maximum context length", answered[6]["error"])
        files = set(os.listdir(self.path("answers")))
        again = snapkv.ray.ask(self.path("rows.jsonl"), **arguments).take_all()
        fresh = set(os.listdir(self.path("answers"))) - files
        self.assertLessEqual(len(fresh), 1)  # the row with an error is tried again
        self.assertEqual(len([r for r in again if r["id"] < 6]), 6)

    @only_in_whole
    def test_a_folder_of_documents(self):
        os.mkdir(self.path("documents"))
        for name, text in (("a.txt", FILLER), ("b.html", f"<p>{FILLER}</p>")):
            with open(os.path.join(self.path("documents"), name), "w", encoding="utf-8") as file:
                file.write(text)
        answered = snapkv.ray.ask(self.path("documents"), model=MODEL, questions=["Where?"],
                                  fields={"max_tokens": 4}, kv_memory=300 << 20).take_all()
        self.assertEqual(sorted(os.path.basename(r["path"]) for r in answered), ["a.txt", "b.html"])
        for row in answered:
            self.assertIsNone(row["error"])
            self.assertEqual(len(row["answers"]), 1)

    def test_an_engine_streams_cancels_and_tells_how_it_is(self):
        engine = snapkv.ray.Engine(MODEL, kv_budget=128, temperature=0, n_ctx=2048)
        alone = snapkv.Model(MODEL, n_threads=1, kv_budget=128, temperature=0)
        expected = alone.chat("Why is the sky blue?", max_tokens=12)
        self.assertEqual(engine.chat("Why is the sky blue?", max_tokens=12), expected)
        pieces = engine.chat("Why is the sky blue?", stream=True, max_tokens=12)
        self.assertEqual("".join(pieces), expected)
        endless = engine.chat("Tell me a story.", stream=True, max_tokens=1500, ignore_eos=True)
        next(endless)
        endless.cancel()
        for _ in range(100):
            if (facts := engine.health())["cancelled"] and not facts["answering"]:
                break
            time.sleep(0.1)
        self.assertEqual((facts["cancelled"], facts["answering"], facts["status"]), (1, 0, "ok"))
        engine.stop()

    @only_in_whole
    def test_an_evaluation_gives_the_same_records(self):
        given = {"lengths": [300, 500], "depths": 2, "policies": ["full", "snapkv"],
                 "budgets": [64], "threads": 1}
        alone = snapkv.eval.needle(MODEL, **given)
        spread = snapkv.eval.needle(MODEL, ray=True, **given)
        without = [{k: v for k, v in r.items() if "seconds" not in k and "_ms" not in k
                    and "bytes" not in k and "tokens_per" not in k} for r in alone]
        self.assertEqual(len(spread), len(alone))
        for one, other in zip(without, spread):
            for name in ("length", "depth", "policy", "score", "answer"):
                if name in one:
                    self.assertEqual(one[name], other[name])


if __name__ == "__main__":
    unittest.main()
