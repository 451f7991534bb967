#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what llama.cpp computes for a GGUF model, as goldens for tests/engine/llama_oracle_test.cpp.

    llama_oracle.py add NAME...                      models of snapkv-test-model: tests/engine/golden/NAME.json
    llama_oracle.py record --model FILE --out GOLDEN.json [--kv f32] [--text-prompts]     any other file

A new case of the tests is `add NAME`, once snapkv-test-model writes NAME (tests/support) and a build is in build/release.
$LLAMA_SERVER starts a real llama.cpp's server; "{dir}" in it stands for the folder of the model, which is also its working
directory, for wrappers that must know it. It is asked over HTTP:
  teacher   64 teacher-forced positions: log-probability of the next token and the two best tokens
  greedy    5 prompts, 64 greedy tokens each with the margin between the two best
Prompts are fixed: token ids from a small generator, or texts for the trained model. Standard library only.
"""
import argparse
import json
import math
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
N_TEACHER, N_GREEDY, N_PROMPTS = 64, 64, 5
TEXTS = [
    "The secret number of Rome is 48213.\nThe baker walked to the river.\n\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is",
    "The captain found a silver coin near the old mill.",
    "\nThe secret number of Paris is 90417.\n",
    "In the morning the farmer gave the dog a loaf of bread and",
    "Question: What is the secret number of Oslo?\nAnswer:",
]
TEACHER_TEXT = (
    "The gardener saw a fox at the bridge. The secret number of Cairo is 71530.\nThe teacher carried a lantern to the "
    "library, and the sailor sang a song about the harbour.\n\nQuestion: What is the secret number of Cairo?\nAnswer: The "
    "secret number of Cairo is 71530.\nThe widow bought a pair of boots in the market."
)


def generated_ids(n, n_vocab, seed, first=3):
    """The same ids as the test: from a 32-bit linear congruential generator, without control tokens."""
    state, ids = seed, []
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        ids.append(first + (state >> 8) % (n_vocab - first))
    return ids


class Server:
    def __init__(self, model, kv):
        with socket.socket() as s:  # a port that is free at the moment
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        folder, name = os.path.split(os.path.abspath(model))
        command = os.environ.get("LLAMA_SERVER", "llama-server").replace("{dir}", folder)
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            shlex.split(command) + ["-m", name, "--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "1", "-t", "1",
                                    "-ctk", kv, "-ctv", kv, "-fa", "off", "--no-warmup"],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(240):
            try:
                if self.get("/health").get("status") == "ok":
                    served = self.get("/v1/models")["data"][0]
                    assert name in served["id"], (name, served)  # not another server
                    self.n_vocab = served["meta"]["n_vocab"]
                    return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.25)
        self.stop()
        raise SystemExit(f"{command}: the server did not start with {model}")

    def get(self, path):
        return json.load(urllib.request.urlopen(self.url + path))

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def next_distribution(server, ids, n):
    """The n best next tokens after `ids`: [(id, log-probability)]."""
    # the bias makes a whole word come out (the server shows nothing for half a character or EOS);
    # the probabilities are those without the bias
    r = server.post("/completion", {"prompt": ids, "n_predict": 1, "n_probs": n, "temperature": 0.0, "cache_prompt": False,
                                    "logit_bias": [[n - 1, 1000.0]]})
    return [(t["id"], t["logprob"]) for t in r["completion_probabilities"][0]["top_logprobs"]]


def teacher(server, ids, n_vocab, full):
    out = {"ids": ids, "next_logprob": [], "best": [], "best_logprob": [], "second_logprob": []}
    rows = []
    for i in range(len(ids) - 1 - N_TEACHER, len(ids) - 1):
        top = next_distribution(server, ids[: i + 1], n_vocab)
        of = dict(top)
        assert len(of) == n_vocab and all(math.isfinite(p) for p in of.values()), (len(of), n_vocab)
        out["next_logprob"].append(round(of[ids[i + 1]], 6))
        out["best"].append(top[0][0])
        out["best_logprob"].append(round(top[0][1], 6))
        out["second_logprob"].append(round(top[1][1], 6))
        rows.append([of[t] for t in range(n_vocab)])
    if full:
        json.dump(rows, open(full, "w"))
    return out


def greedy(server, ids, n_vocab, first_id):
    """Greedy decoding among the tokens from first_id on."""
    r = server.post("/completion", {"prompt": ids, "n_predict": N_GREEDY, "n_probs": n_vocab, "temperature": 0.0,
                                    "cache_prompt": False, "return_tokens": True,
                                    "logit_bias": [[i, False] for i in range(first_id)]})
    margins = []
    for token, p in zip(r["tokens"], r["completion_probabilities"]):
        top = [t for t in p["top_logprobs"] if t["id"] >= first_id]
        assert top[0]["id"] == token, (top[:2], token)
        margins.append(round(top[0]["logprob"] - top[1]["logprob"], 6))
    assert len(margins) == len(r["tokens"]), (len(margins), len(r["tokens"]))
    return {"prompt": ids, "tokens": r["tokens"], "margin": margins, "first_id": first_id}


def first_text_id(name):
    """The first id of texts in a random model: before them lie control tokens or, in Chameleon, tokens that it may not write."""
    return 8196 if name.startswith("chameleon") else 3


def record(model, out, made_by, kv="f32", text_prompts=False, full=None):
    server = Server(model, kv)
    n_vocab = server.n_vocab
    try:
        if text_prompts:
            tokenize = lambda t: server.post("/tokenize", {"content": t, "add_special": True})["tokens"]
            forced, prompts, first_id = tokenize(TEACHER_TEXT), [tokenize(t) for t in TEXTS], 0
        else:
            first = first_text_id(os.path.basename(model))
            forced = [1] + generated_ids(N_TEACHER + 16, n_vocab, 7, first)
            first_id = 259  # random models: only whole words, so that the server shows every token
            prompts = [[1] + generated_ids(20 + 13 * i, n_vocab, 100 + i, first) for i in range(N_PROMPTS)]
        golden = {
            "command": " ".join(["tools/llama_oracle.py"] + [shlex.quote(a) for a in sys.argv[1:]]),
            "made_by": made_by,
            "kv": kv,
            "teacher": teacher(server, forced, n_vocab, full),
            "greedy": [greedy(server, p, n_vocab, first_id) for p in prompts],
        }
    finally:
        server.stop()
    with open(out, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")


def add(names, test_model):
    """Records goldens of models that the tests write themselves."""
    sys.argv[1:] = ["add"]  # each golden's command names only its own model
    for name in names:
        sys.argv[2:] = [name]
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            model = os.path.join(folder, name + ".gguf")
            subprocess.run([test_model, name, model], check=True)
            record(model, ROOT / "tests/engine/golden" / (name + ".json"), f"snapkv-test-model {name} {name}.gguf")
        print(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add", help="goldens of the tests' own models")
    adding.add_argument("names", nargs="+")
    adding.add_argument("--test-model", default=str(ROOT / "build/release/bin/snapkv-test-model"))
    recording = commands.add_parser("record", help="a golden of any model")
    recording.add_argument("--model", required=True)
    recording.add_argument("--out", required=True)
    recording.add_argument("--made-by", default="", help="the command that made the model, for the record")
    recording.add_argument("--kv", default="f32", help="llama.cpp's cache type")
    recording.add_argument("--text-prompts", action="store_true", help="texts for the trained model instead of generated ids")
    recording.add_argument("--full", help="also write all log-probabilities, for a comparison outside of the tests")
    args = parser.parse_args()
    if args.command == "add":
        add(args.names, args.test_model)
    else:
        record(args.model, args.out, args.made_by or args.model, args.kv, args.text_prompts, args.full)


if __name__ == "__main__":
    main()
