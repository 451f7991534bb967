#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare llama.cpp on a converted file with what transformers computed for the folder.

    hf_llama_check.py --model MODEL.gguf --golden GOLDEN.json [--tolerance 1e-3]

MODEL.gguf is what `snapkv convert` wrote of the folder that hf_oracle.py --folder kept beside
GOLDEN.json. $LLAMA_SERVER as in llama_oracle.py. Prints the greatest difference of the 64
log-probabilities; exits with 1 when it is above the tolerance. Standard library only.
"""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
from llama_oracle import N_TEACHER, Server, next_distribution  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    args = parser.parse_args()
    with open(args.golden) as f:
        golden = json.load(f)
    teacher = golden["teacher"]
    ids = teacher["ids"]
    server = Server(args.model, "f32")
    try:
        worst = 0.0
        for i in range(N_TEACHER):
            n_past = len(ids) - N_TEACHER + i
            of = dict(next_distribution(server, ids[:n_past], server.n_vocab))
            worst = max(worst, abs(of[ids[n_past]] - teacher["next_logprob"][i]),
                        abs(of[teacher["best"][i]] - teacher["best_logprob"][i]))
    finally:
        server.stop()
    print(f"{os.path.basename(args.model)}: log-probabilities differ by {worst:.6f} at most")
    return 1 if worst > args.tolerance else 0


if __name__ == "__main__":
    sys.exit(main())
