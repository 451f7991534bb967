#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what llama.cpp computes for a GGUF model, as goldens for tests/engine/llama_oracle_test.cpp.

    llama_oracle.py --model FILE --made-by COMMAND --n-vocab N --out GOLDEN.json [--kv f32] [--text-prompts]

Starts $LLAMA_SERVER (default "llama-server": a real llama.cpp, or a wrapper that takes its flags), asks it over HTTP, writes JSON:
  teacher   64 teacher-forced positions: log-probability of the next token and the two best tokens
  greedy    5 prompts, 64 greedy tokens each with the margin between the two best
Prompts are fixed: token ids from a small generator, or texts for the trained model. Standard library only.
"""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import time
import urllib.request

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


def generated_ids(n, n_vocab, seed):
    """The ids that the test makes too: a 32-bit linear congruential generator, control tokens left out."""
    state, ids = seed, []
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        ids.append(3 + (state >> 8) % (n_vocab - 3))
    return ids


class Server:
    def __init__(self, command, model, kv, port):
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            shlex.split(command) + ["-m", model, "--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "1", "-t", "2",
                                    "-ctk", kv, "-ctv", kv, "-fa", "off", "--no-warmup"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(120):
            try:
                if self.get("/health").get("status") == "ok":
                    return
            except OSError:
                time.sleep(0.25)
        raise SystemExit("the server did not start")

    def get(self, path):
        return json.load(urllib.request.urlopen(self.url + path))

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request))

    def stop(self):
        self.process.terminate()
        self.process.wait()


def next_distribution(server, ids, n):
    """The n best next tokens after `ids`: [(id, log-probability)]."""
    # the bias makes a whole word come out (the server shows nothing for half a character or EOS); the
    # probabilities are those before it
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
    """Greedy among the tokens from first_id on."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="the GGUF file, as the server sees it")
    parser.add_argument("--made-by", required=True, help="the command that made the model, for the record")
    parser.add_argument("--out", required=True)
    parser.add_argument("--n-vocab", type=int, required=True)
    parser.add_argument("--kv", default="f32", help="llama.cpp's cache type")
    parser.add_argument("--text-prompts", action="store_true", help="texts for the trained model instead of generated ids")
    parser.add_argument("--full", help="also write all log-probabilities, for a comparison outside of the tests")
    parser.add_argument("--port", type=int, default=18080)
    args = parser.parse_args()
    server = Server(os.environ.get("LLAMA_SERVER", "llama-server"), args.model, args.kv, args.port)
    try:
        if args.text_prompts:
            tokenize = lambda t: server.post("/tokenize", {"content": t, "add_special": True})["tokens"]
            forced, prompts, first_id = tokenize(TEACHER_TEXT), [tokenize(t) for t in TEXTS], 0
        else:
            forced = [1] + generated_ids(N_TEACHER + 16, args.n_vocab, 7)
            first_id = 259  # random models: whole words only, so that the server shows every token
            prompts = [[1] + generated_ids(20 + 13 * i, args.n_vocab, 100 + i) for i in range(N_PROMPTS)]
        golden = {
            "command": " ".join(["tools/llama_oracle.py"] + [shlex.quote(a) for a in sys.argv[1:]]),
            "made_by": args.made_by,
            "kv": args.kv,
            "teacher": teacher(server, forced, args.n_vocab, args.full),
            "greedy": [greedy(server, p, args.n_vocab, first_id) for p in prompts],
        }
    finally:
        server.stop()
    with open(args.out, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
