#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Loads an OpenAI-compatible server with many long prompts at once, and compares servers.

  server_load.py --clients 1,4,16 --tokens 8000 [--seconds 60 | --rounds 1] NAME=COMMAND [NAME=COMMAND ...]

Each COMMAND starts a server; {port} in it becomes a free port of 127.0.0.1. For every server and
number of clients, each client sends prompts of its own to /v1/completions, one after the other, as
a stream, greedily and for a fixed number of tokens. Printed per row: requests, failures, seconds,
prompt and generated tokens per second, time to first token and between tokens, resident memory
before and after. With --check every answer is asked for again alone, and must be the same.

Requests only ever go to 127.0.0.1, and end after --seconds or --rounds. A client that gets nothing
for --patience seconds goes away, which counts as a failure: a bound for servers that are too slow.
"""
import argparse
import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

WORDS = ("river stone window garden letter mountain paper silver morning bridge candle forest "
         "harbour island journey kettle lantern meadow needle orchard").split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prompt_text(n_words, seed):
    """Words in an order of the seed's own, so that no two prompts begin alike."""
    state, words = seed * 2654435761 % 2**32, []
    for _ in range(n_words):
        state = (state * 1664525 + 1013904223) % 2**32
        words.append(WORDS[state >> 8 & 15] + ("" if state >> 20 & 7 else str(state >> 24)))
    return " ".join(words)


def tree_rss(pid):
    """Resident bytes of a process and those that it started."""
    total, todo = 0, [pid]
    while todo:
        one = todo.pop()
        try:
            with open(f"/proc/{one}/statm") as f:
                total += int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as f:
                    todo += [int(p) for p in f.read().split()]
        except OSError:
            pass
    return total


class Server:
    def __init__(self, name, command, log, patience):
        self.name, self.port, self.patience = name, free_port(), patience
        self.process = subprocess.Popen(shlex.split(command.replace("{port}", str(self.port))),
                                        stdout=log, stderr=log, start_new_session=True)
        until = time.time() + 600
        while not self.healthy():
            if self.process.poll() is not None or time.time() > until:
                raise SystemExit(f"{name}: the server did not start: {command}")
            time.sleep(0.2)

    def healthy(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def post(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.patience)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    def count(self, text):
        return len(json.load(self.post("/tokenize", {"content": text}))["tokens"])

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Answer:
    text, first, gaps, error = "", None, None, None


def complete(server, prompt, n_predict):
    """One streamed answer."""
    answer, begin, last = Answer(), time.time(), None
    answer.gaps = []
    try:
        response = server.post("/v1/completions", {
            "prompt": prompt, "max_tokens": n_predict, "temperature": 0, "ignore_eos": True,
            "stream": True, "cache_prompt": False})
        if response.status != 200:
            raise OSError(f"{response.status}: {response.read(300)}")
        ended = False
        for line in response:
            if not line.startswith(b"data: "):
                continue
            if line.startswith(b"data: [DONE]"):
                ended = True
                break
            event = json.loads(line[6:])
            if "error" in event:
                raise OSError(str(event["error"]))
            now = time.time()
            text = "".join(c.get("text", "") for c in event.get("choices", []))
            if answer.first is None:
                answer.first = now - begin
            elif last is not None:
                answer.gaps.append(now - last)
            last = now
            answer.text += text
        if not ended:
            raise OSError("the stream ended without [DONE]")
    except (OSError, ValueError, http.client.HTTPException) as e:
        answer.error = str(e) or type(e).__name__
    return answer


def load(server, n_clients, prompts, arguments):
    """Every client's prompts and answers, and the seconds that all took."""
    results, lock, begin = [], threading.Lock(), time.time()

    def client(index):
        i = index
        while True:
            answer = complete(server, prompts[i % len(prompts)], arguments.n_predict)
            with lock:
                results.append((i % len(prompts), answer))
            i += n_clients
            done = (time.time() - begin >= arguments.seconds if arguments.seconds
                    else i >= n_clients * arguments.rounds)
            if done:
                return

    threads = [threading.Thread(target=client, args=(i,)) for i in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, time.time() - begin


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--clients", default="1,4,16")
    parser.add_argument("--tokens", type=int, default=8000, help="of each prompt, about")
    parser.add_argument("--n-predict", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=1, help="prompts of each client")
    parser.add_argument("--seconds", type=float, default=0, help="instead of rounds")
    parser.add_argument("--patience", type=float, default=7200, help="seconds without a byte")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--log", default=os.devnull, help="what the servers write")
    arguments = parser.parse_args()
    counts = [int(n) for n in arguments.clients.split(",")]
    n_failed = 0
    print("| server | clients | requests | failed | seconds | prompt tok/s | generated tok/s | "
          "first token median, 95% | gap median, 95%, most | RSS before, after |")
    print("|" + "---|" * 10)
    with open(arguments.log, "a") as log:
        for given in arguments.servers:
            name, command = given.split("=", 1)
            server = Server(name, command, log, arguments.patience)
            try:
                sample = prompt_text(1000, 1)
                n_words = arguments.tokens * 1000 // server.count(sample)
                prompts = [prompt_text(n_words, i + 1) for i in range(max(counts) * arguments.rounds)]
                n_prompt = server.count(prompts[0])
                for n_clients in counts:
                    before = tree_rss(server.process.pid)
                    results, seconds = load(server, n_clients, prompts, arguments)
                    good = [a for _, a in results if a.error is None]
                    failed = [a.error for _, a in results if a.error is not None]
                    firsts = [a.first for a in good]
                    gaps = [gap for a in good for gap in a.gaps]
                    print(f"| {name} | {n_clients} | {len(results)} | {len(failed)} | {seconds:.1f} | "
                          f"{len(good) * n_prompt / seconds:.1f} | "
                          f"{len(good) * arguments.n_predict / seconds:.1f} | "
                          f"{quantile(firsts, 0.5):.2f} s, {quantile(firsts, 0.95):.2f} s | "
                          f"{1e3 * quantile(gaps, 0.5):.0f}, {1e3 * quantile(gaps, 0.95):.0f}, "
                          f"{1e3 * max(gaps, default=float('nan')):.0f} ms | "
                          f"{before >> 20}, {tree_rss(server.process.pid) >> 20} MiB |", flush=True)
                    for error in sorted(set(failed)):
                        print(f"{name}: {failed.count(error)} times: {error}", file=sys.stderr)
                    n_failed += len(failed)
                    if arguments.check:
                        alone = {}
                        for index, answer in results:
                            if index not in alone:
                                alone[index] = complete(server, prompts[index], arguments.n_predict)
                            if answer.error is None and answer.text != alone[index].text:
                                print(f"{name}: prompt {index}: not what it gets alone", file=sys.stderr)
                                n_failed += 1
            finally:
                server.stop()
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
