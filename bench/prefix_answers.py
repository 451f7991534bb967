#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""prefix_answers.py PROGRAM -m MODEL TEXT...: whether an answer after a reused beginning is that of the whole
prompt.

Starts `snapkv serve` and cuts prompts out of the texts. Each is read as a whole, then its beginning
without the last few words, then again, so that only what is new is read. Prints how far the
log-probabilities of the first token's five likeliest moved, and how often the likeliest is another.
Talks to 127.0.0.1 only; docs/performance.md has its numbers.
"""
import argparse
import random

from local_server import LocalServer

MOST_NEW = 24  # tokens


def first_token(server, prompt, **more):
    """The log-probabilities of its five likeliest, and how many tokens of the prompt were read."""
    answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0,
                                             "logprobs": 5, "ignore_eos": True, **more})
    usage = answer["usage"]
    n_new = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
    return answer["choices"][0]["logprobs"]["top_logprobs"][0], n_new


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=200)
    options = parser.parse_args()
    texts = []
    for path in options.texts:
        with open(path, encoding="utf-8", errors="replace") as f:
            texts.append(f.read())
    texts = [text for text in texts if len(text) > 10_000]
    if not texts:
        raise SystemExit("no text has 10000 characters")
    rng = random.Random(1)
    server = LocalServer(options.program, options.model, options.threads)
    moved, flips = [], 0
    while len(moved) < options.prompts:
        text = rng.choice(texts)
        begin = rng.randrange(len(text) - 5_000)
        words = text[begin:begin + rng.randrange(400, 1800)].split()[1:]
        whole = " ".join(words)
        cold, _ = first_token(server, whole, cache_prompt=False)
        first_token(server, " ".join(words[:-rng.randrange(1, 14)]))
        warm, n_new = first_token(server, whole)
        if n_new >= MOST_NEW:
            continue
        moved.append(max(abs(cold[token] - warm[token]) for token in cold if token in warm))
        flips += max(cold, key=cold.get) != max(warm, key=warm.get)
    server.stop()
    moved.sort()
    print(f"{len(moved)} prompts, of which fewer than {MOST_NEW} tokens were new: {moved.count(0)} are the "
          f"same; log-probabilities moved by {moved[len(moved) // 2]:.2g} (median), at most "
          f"{moved[-1]:.2g}; {flips} likeliest tokens are others")


if __name__ == "__main__":
    main()
