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
import http.client
import json
import random
import subprocess

MOST_NEW = 24  # tokens


class Server:
    def __init__(self, options):
        command = [options.program, "serve", "-m", options.model, "--port", "0", "-t",
                   str(options.threads), "--no-progress"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        errors = ""
        while "ready: " not in errors:
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the server did not start: " + errors)
            errors += line
        self.port = int(errors.rsplit(":", 1)[1])

    def complete(self, prompt, **more):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 5, "ignore_eos": True,
                **more}
        connection.request("POST", "/v1/completions", json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise SystemExit(text.decode())
        connection.close()
        answer = json.loads(text)
        usage = answer["usage"]
        n_new = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
        return answer["choices"][0]["logprobs"]["top_logprobs"][0], n_new

    def stop(self):
        self.process.terminate()
        self.process.terminate()  # the second signal ends it at once
        self.process.wait()


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
    server = Server(options)
    moved, flips = [], 0
    while len(moved) < options.prompts:
        text = rng.choice(texts)
        begin = rng.randrange(len(text) - 5_000)
        words = text[begin:begin + rng.randrange(400, 1800)].split()[1:]
        whole = " ".join(words)
        cold, _ = server.complete(whole, cache_prompt=False)
        server.complete(" ".join(words[:-rng.randrange(1, 14)]))
        warm, n_new = server.complete(whole)
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
