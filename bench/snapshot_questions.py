#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""snapshot_questions.py PROGRAM -m MODEL -f TEXT: what a further question to a document costs.

Starts `snapkv serve`, asks about the text once as a prompt of its own, stores it with every row and
compressed, and asks each snapshot --questions times; then a server that keeps prompts
(--prefix-cache), with other questions about the same text. Prints the time to the first token and
the processor time of the first question and, as medians, of the later ones, beside their share of
the first. Talks to 127.0.0.1 only; docs/server.md has its numbers.
"""
import argparse
import os
import statistics
import tempfile
import time

from local_server import LocalServer


class Server(LocalServer):
    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def timed(self, path, body):
        """Seconds and processor seconds until the answer is complete, and the answer."""
        begin, used = time.perf_counter(), self.processor_seconds()
        answer = self.post(path, body)
        return time.perf_counter() - begin, self.processor_seconds() - used, answer

    def ask(self, prompt, **kv):
        return self.timed("/v1/completions",
                          {"prompt": prompt, "max_tokens": 1, "temperature": 0, "kv": kv})


def report(name, first, later):
    wall, used = (statistics.median(column) for column in list(zip(*later))[:2])
    print(f"{name}: {wall:.3f} s ({wall / first[0]:.2%}), "
          f"processor {used:.2f} s ({used / first[1]:.2%})", flush=True)


def measure_snapshots(server, options, text):
    first = server.ask(text + options.question)
    print(f"the whole prompt, {first[2]['usage']['prompt_tokens']} tokens: {first[0]:.2f} s, "
          f"processor {first[1]:.2f} s", flush=True)
    for name, more in (("snapshot, every row", {"keep_full": True}), ("snapshot, compressed", {})):
        server.post("/v1/kv/snapshots", {"name": "text", "text": text, **more})
        once = server.ask(options.question, snapshot="text")
        later = [server.ask(options.question, snapshot="text") for _ in range(options.questions)]
        report(f"{name}, after one in {once[0]:.3f} s", first, later)


def measure_kept(server, options, text):
    first = server.ask(text + options.question)
    later = [server.ask(f"{text}\n{i + 1}.{options.question}") for i in range(options.questions)]
    reused = later[-1][2]["kv"]["reused_tokens"]
    report(f"--prefix-cache, {reused} tokens kept, after one in {first[0]:.2f} s", first, later)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-f", "--file", required=True, help="the text")
    parser.add_argument("-q", "--question", default="\nWhat is the most important of all these things?")
    parser.add_argument("-n", "--questions", type=int, default=10)
    parser.add_argument("-t", "--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as f:
        text = f.read()
    with tempfile.TemporaryDirectory() as folder:
        for run, more in ((measure_snapshots, ("--reuse", "off", "--snapshot-dir", folder)),
                          (measure_kept, ("--reuse", "refresh", "--prefix-cache", "4G"))):
            server = Server(options.program, options.model, options.threads, *more)
            try:
                run(server, options, text)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
