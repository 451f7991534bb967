#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures snapkv.ray on this machine; the tables of docs/machines.md.

  ray_replicas.py MODEL replicas   1, 2 and 4 replicas of a thread each, the same load
  ray_replicas.py MODEL routes     16 conversations on 4 replicas, by way of choosing a replica
  ray_replicas.py MODEL overhead   milliseconds that Ray adds to a token, beside `snapkv serve` alone
  ray_replicas.py MODEL split      a mixed load with and without a replica that reads for others
  ray_replicas.py MODEL wire       bytes of a prompt's cache as it travels
  ray_replicas.py MODEL batch      seconds of a document in a batch, of --documents
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests" / "python"), str(ROOT / "python")]
os.environ.setdefault("PYTHONPATH", str(ROOT / "python"))

import ray_cluster as on  # noqa: E402
from ray import serve  # noqa: E402
from ray.serve.request_router import RequestRouter  # noqa: E402

import snapkv.ray  # noqa: E402
from snapkv._server import Server  # noqa: E402

POWER_OF_TWO = "ray.serve._private.request_router.PowerOfTwoChoicesRequestRouter"
FILLER = ("The ship sails along the coast, and the sea is calm today. The captain writes a letter to "
          "the harbour master about the cargo, the crew and the weather of the last days. ")


class RoundRobin(RequestRouter):
    """One replica after the other."""

    def initialize_state(self, **_):
        self._next = 0

    async def choose_replicas(self, candidate_replicas, pending_request=None):
        ordered = sorted(candidate_replicas, key=lambda r: str(r.replica_id))
        self._next += 1
        first = self._next % len(ordered)
        return [[r] for r in ordered[first:] + ordered[:first]]


class Timed:
    """A streamed answer: seconds to its first text and between its texts, and its usage."""

    def __init__(self, port, body):
        connection = on.http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        begin = last = time.monotonic()
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {**body, "stream": True, "stream_options": {"include_usage": True}}))
        response = connection.getresponse()
        self.first, self.gaps, self.text, self.usage = None, [], "", None
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[len(b"data: "):])
            if "error" in event:
                raise RuntimeError(event)
            self.usage = event.get("usage") or self.usage
            text = "".join(c["delta"].get("content") or "" for c in event.get("choices", ()))
            if not text:
                continue
            now = time.monotonic()
            if self.first is None:
                self.first = now - begin
            else:
                self.gaps.append(now - last)
            self.text, last = self.text + text, now
        self.seconds = time.monotonic() - begin
        connection.close()

    @property
    def read(self):
        return self.usage["prompt_tokens"] - self.usage["prompt_tokens_details"]["cached_tokens"]


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def body_of(messages, max_tokens):
    return {"messages": messages, "max_tokens": max_tokens, "temperature": 0}


def conversations(port, n, turns, words, answer=16, at_once=4):
    """n conversations of some turns. Returns (answers, tokens read for each new one)."""
    def one(i):
        messages = [{"role": "system", "content": f"You are sailor {i}. " + FILLER * (words // 30)}]
        found, known = [], 0
        for turn in range(turns):
            messages.append({"role": "user", "content": f"Turn {turn} of {i}: " + FILLER})
            timed = Timed(port, body_of(messages, answer))
            messages.append({"role": "assistant", "content": timed.text})
            found.append((timed, timed.usage["prompt_tokens"] - known))
            known = timed.usage["prompt_tokens"]
        return found
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        found = [pair for all_of in pool.map(one, range(n)) for pair in all_of]
    timed = [t for t, _ in found]
    return timed, sum(t.read for t in timed) / sum(new for _, new in found)


def serving(port, model, **given):
    chosen = {"kv_memory": "600M", "kv_budget": 512, "ctx_size": 8192, **given}
    serve.run(snapkv.ray.app(model, **chosen), name="bench")


def replicas(nodes, model, _given):
    print("| replicas | requests a minute | first token, median | 95 % | tokens read for a new one |\n"
          "|---|---|---|---|---|")
    for n in (1, 2, 4):
        serving(nodes.port, model, replicas=n)
        begin = time.monotonic()
        timed, ratio = conversations(nodes.port, 8, 3, 300)
        minutes = (time.monotonic() - begin) / 60
        firsts = [t.first for t in timed if t.first is not None]
        print(f"| {n} | {len(timed) / minutes:.0f} | {statistics.median(firsts):.2f} s | "
              f"{percentile(firsts, 0.95):.2f} s | {ratio:.2f} |", flush=True)
        serve.delete("bench")


def routes(nodes, model, _given):
    print("| way | tokens read for a new one | first token, median | 95 % |\n|---|---|---|---|")
    for name, router in (("longest beginning", None), ("power of two choices", POWER_OF_TWO),
                         ("round robin", RoundRobin)):
        serving(nodes.port, model, replicas=4, router=router)
        timed, ratio = conversations(nodes.port, 16, 4, 150, answer=8)
        firsts = [t.first for t in timed if t.first is not None]
        print(f"| {name} | {ratio:.2f} | {statistics.median(firsts):.2f} s | "
              f"{percentile(firsts, 0.95):.2f} s |", flush=True)
        serve.delete("bench")


def overhead(nodes, model, _given):
    body = body_of([{"role": "user", "content": "Tell me a long story about the sea."}], 200)
    body.update(ignore_eos=True)
    given = {"kv_memory": "600M", "kv_budget": 512, "ctx_size": 8192}
    serving(nodes.port, model, replicas=1, draft="off")
    port = on.free_port()
    import subprocess  # pylint: disable=import-outside-toplevel
    from snapkv import _program  # pylint: disable=import-outside-toplevel
    alone = subprocess.Popen([_program.path(), "serve", "-m", model, "--threads", "1", "--port",
                              str(port), "--draft", "off", *_program.arguments(given)],
                             stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                if on.request(port, "GET", "/health")[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.2)
        results = {"snapkv serve": [], "with Ray": []}
        for _ in range(5):
            for name, at in (("snapkv serve", port), ("with Ray", nodes.port)):
                results[name].append(Timed(at, body))
    finally:
        alone.terminate()
        alone.wait()
    print("| | first token, median | a token, median of all gaps | mean |\n|---|---|---|---|")
    for name, timed in results.items():
        gaps = [g for t in timed for g in t.gaps]
        print(f"| {name} | {statistics.median(t.first for t in timed) * 1e3:.1f} ms | "
              f"{statistics.median(gaps) * 1e3:.2f} ms | {statistics.mean(gaps) * 1e3:.2f} ms |")


def split(nodes, model, _given):
    print("| | gap between tokens, median | 95 % | longest | first token of long prompts, median |\n"
          "|---|---|---|---|---|")
    for name, given in (("2 replicas", {"replicas": 2}),
                        ("1 replica, 1 that reads", {"replicas": 1, "prefill_replicas": 1})):
        serving(nodes.port, model, draft="off", **given)
        story = body_of([{"role": "user", "content": "Tell me a long story."}], 1000)
        story.update(ignore_eos=True)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [pool.submit(Timed, nodes.port, story) for _ in range(2)]
            time.sleep(0.5)
            long = [Timed(nodes.port, body_of(
                [{"role": "user", "content": f"Log {i}. " + FILLER * 60}], 8)) for i in range(3)]
            gaps = [g for t in running for g in t.result().gaps]
        print(f"| {name} | {statistics.median(gaps) * 1e3:.0f} ms | "
              f"{percentile(gaps, 0.95) * 1e3:.0f} ms | {max(gaps) * 1e3:.0f} ms | "
              f"{statistics.median(t.first for t in long):.2f} s |", flush=True)
        serve.delete("bench")


def wire(_nodes, model, given):
    print("| tokens | rows kept | bytes that travel | uncompressed cache (f16) | ratio |\n"
          "|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for budget in (512, 1024):
            words = ["-m", model, "--kv-budget", budget, "--ctx-size", given.tokens + 2048,
                     "--snapshot-dir", folder]
            with Server(words) as server:
                text = FILLER * (given.tokens // 37)
                status, answer = server.request(
                    "POST", "/v1/kv/prompts?path=/v1/completions&name=wire",
                    {"prompt": text, "temperature": 0})
                assert status == 200, answer
                facts = json.loads(answer)
                sent = os.path.getsize(os.path.join(folder, "wire.prompt"))
                full = facts["kv"]["bytes_before"]
                print(f"| {facts['tokens']} | {facts['kv']['tokens_kept']} | {sent / 1e6:.1f} MB | "
                      f"{full / 1e6:.1f} MB | {full / sent:.1f} |", flush=True)


def batch(_nodes, model, given):
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows.jsonl")
        with open(rows, "w", encoding="utf-8") as file:
            for i in range(given.documents):
                file.write(json.dumps({"text": f"Log {i}. " + FILLER * 12 +
                                       f"The code is {1000 + i}.",
                                       "questions": ["What is the code?", "Who writes?"]}) + "\n")
        begin = time.monotonic()
        answered = snapkv.ray.ask(rows, model=model, out=os.path.join(folder, "out"), workers=2,
                                  kv_memory=400 << 20, ctx_size=4096, fields={"max_tokens": 8})
        seconds = time.monotonic() - begin
        found = answered.take_all()
        print(f"{len(found)} documents, {sum(r['error'] is None for r in found)} answered, "
              f"{sum(r['read_tokens'] for r in found) / len(found):.0f} tokens read and "
              f"{sum(r['written_tokens'] for r in found) / len(found):.0f} written of each, "
              f"{seconds:.0f} s with the start: {seconds / len(found):.3f} s of two processes each")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("what", choices=["replicas", "routes", "overhead", "split", "wire", "batch"])
    parser.add_argument("--tokens", type=int, default=16000, help="of the prompt (wire)")
    parser.add_argument("--documents", type=int, default=1000, help="of the batch")
    given = parser.parse_args()
    model = os.path.abspath(given.model)
    if given.what == "wire":
        wire(None, model, given)
        return
    nodes = on.Nodes(0, head_cpus=5)
    try:
        globals()[given.what](nodes, model, given)
    finally:
        nodes.stop()


if __name__ == "__main__":
    main()
