#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent_load.py PROGRAM MODEL [-- OPTIONS OF SERVE]: starts `snapkv serve` and puts a mixed load on it: agents
whose conversations grow, over the three APIs and with tools; long prompts; documents; clients that
leave; and clients that send too much, too slowly, or nonsense. Fails if a good request gets no whole
answer, if /health or /metrics is late, or if the server takes more memory than it has promised.

    tools/agent_load.py build/release/bin/snapkv model.gguf --minutes 10
"""
import argparse
import collections
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
SENTENCES = ("The sky over the valley was clear.", "Nobody walked along the river that day.",
             "The parser reads one token after another.", "Each test begins with an empty folder.",
             "Their train left at seven, an hour late.", "A cache is of no use before it is filled.")
TOOL = {"name": "read_file", "description": "Reads a file of the project.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}},
                       "required": ["path"]}}
HEALTH_SECONDS = 5


class Server:
    def __init__(self, program, model, folder, options):
        command = [program, "serve", "-m", model, "--port", "0", "--no-progress", "--snapshot-dir",
                   folder, *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        log = ""
        while "ready: " not in log:
            line = self.process.stderr.readline()
            if not line:
                sys.exit("the server did not start:\n" + log)
            log += line
        self.port = int(log.strip().rsplit(":", 1)[1])
        self.promised = (size_after(log, "--kv-memory: ") + size_after(log, "--body-memory: ")
                         + os.path.getsize(model))
        self.errors = log
        threading.Thread(target=self.read_errors, daemon=True).start()
        self.before = self.status("VmRSS") * 1024

    def read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status") as f:
            for line in f:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        return 0

    def most_allowed(self):
        return 1.2 * (self.before + self.promised)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it did not end within 60 s"


def size_after(log, name):
    number, unit = log[log.index(name) + len(name):].split()[:2]
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}[unit]


class Load:
    def __init__(self, server, seed):
        self.server = server
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.failures = []
        self.peak = 0
        self.slowest_health = 0.0
        self.seed = seed

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fail(self, what):
        with self.lock:
            if len(self.failures) < 20:
                self.failures.append(what)
            self.counts["failures"] += 1

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=300)

    def ask(self, method, path, body=None):
        """Returns status and text of an answer; asks again where the server says that it is busy."""
        data = None if body is None else json.dumps(body)
        while True:
            connection = self.connect()
            try:
                connection.request(method, path, data, {"Content-Type": "application/json"})
                response = connection.getresponse()
                text = response.read().decode()
            except (OSError, http.client.HTTPException) as e:
                return 0, repr(e)
            finally:
                connection.close()
            retry = response.getheader("Retry-After")
            if response.status not in (429, 503) or retry is None or self.ending.is_set():
                return response.status, text
            self.count("asked again")
            self.ending.wait(min(float(retry), 1))

    def expect(self, what, path, body, end=None):
        """A request that must succeed; `end`: of its stream."""
        status, text = self.ask("POST", path, body)
        if status == 200 and (end is None or text.rstrip().endswith(end)):
            self.count(what)
            return text
        if not self.ending.is_set():
            self.fail(f"{what}: {status} {text[-300:]}")
        return None

    # ------------------------------------------------------------------ those who behave

    def text(self, rng, n):
        return " ".join(rng.choice(SENTENCES) for _ in range(n))

    def chat_agent(self, rng):
        messages = [{"role": "system", "content": self.text(rng, 40)}]
        for turn in range(rng.randrange(2, 6)):
            messages.append({"role": "user", "content": f"{turn}: {self.text(rng, 8)}"})
            body = {"messages": messages, "max_tokens": 16, "stream": True,
                    "tools": [{"type": "function", "function": TOOL}]}
            if self.expect("chat", "/v1/chat/completions", body, "data: [DONE]") is None:
                return
            messages.append({"role": "assistant", "content": self.text(rng, 1)})
            if self.ending.is_set():
                return

    def messages_agent(self, rng):
        body = {"max_tokens": 16, "system": self.text(rng, 30), "stream": rng.random() < 0.5,
                "messages": [{"role": "user", "content": self.text(rng, 10)}]}
        self.expect("messages", "/v1/messages", body,
                    'data: {"type":"message_stop"}' if body["stream"] else None)

    def responses_agent(self, rng):
        body = {"max_output_tokens": 16, "instructions": self.text(rng, 20),
                "input": self.text(rng, 10)}
        self.expect("responses", "/v1/responses", body)

    def long_prompt(self, rng):
        body = {"prompt": self.text(rng, rng.randrange(50, 250)), "max_tokens": 8, "n": 2}
        self.expect("long prompt", "/v1/completions", body)

    def reader(self, rng):
        name = f"book-{rng.randrange(4)}-{threading.get_ident()}"
        made = self.expect("document", "/v1/kv/snapshots",
                           {"name": name, "text": self.text(rng, 100)})
        if made is None:
            return
        for _ in range(2):
            self.expect("question", "/v1/completions",
                        {"prompt": self.text(rng, 1), "max_tokens": 8, "kv": {"snapshot": name}})
        status, text = self.ask("DELETE", "/v1/kv/snapshots/" + name)
        if status != 200 and not self.ending.is_set():
            self.fail(f"delete: {status} {text[-300:]}")

    # ------------------------------------------------------------------ those who do not

    def leaver(self, rng):
        body = json.dumps({"prompt": self.text(rng, 50), "max_tokens": 200, "stream": True,
                           "ignore_eos": True})
        connection = self.connect()
        try:
            connection.request("POST", "/v1/completions", body)
            connection.sock.settimeout(rng.random())
            connection.getresponse().read(rng.randrange(1, 500))
        except (OSError, http.client.HTTPException):
            pass
        connection.close()
        self.count("left")

    def large_bodies(self, rng):
        size = rng.choice((3 * MIB, 3 * MIB, 20 * MIB))
        body = {"messages": [{"role": "user", "content": "word " * (size // 5)}], "max_tokens": 1}
        if rng.random() < 0.3:
            body = {"prompt": [1] * (size // 6), "max_tokens": 1}
        path = "/v1/chat/completions" if "messages" in body else "/v1/completions"
        status, text = self.ask("POST", path, body)
        # a client that is still sending may not see the refusal
        if status not in (0, 400, 413) and not self.ending.is_set():
            self.fail(f"a body of {size >> 20} MiB: {status} {text[-300:]}")
        self.count("large bodies")

    def slow_body(self, _rng):
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                               b"Content-Length: 100000\r\n\r\n")
                for _ in range(30):
                    client.sendall(b" ")
                    if self.ending.wait(1):
                        break
        except OSError:
            pass
        self.count("slow bodies")

    def nonsense(self, rng):
        for path, text in (("/v1/completions", "{" * 300), ("/v1/chat/completions", '{"messages": 3}'),
                           ("/v1/messages", "\0\xff"), ("/none", "{}"),
                           ("/v1/completions", '{"prompt": "x", "grammar": "root ::= ("}')):
            connection = self.connect()
            try:
                connection.request("POST", path, text.encode("latin-1"))
                status = connection.getresponse().status
                if not 400 <= status < 500 and status not in (501, 503) and not self.ending.is_set():
                    self.fail(f"nonsense to {path}: {status}")
            except (OSError, http.client.HTTPException):
                pass
            connection.close()
        self.count("nonsense")
        self.ending.wait(rng.random())

    # ------------------------------------------------------------------ watching

    def watch_health(self):
        while not self.ending.is_set():
            for path in ("/health", "/metrics"):
                begin = time.monotonic()
                connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
                try:
                    connection.request("GET", path)
                    status = connection.getresponse().status
                except (OSError, http.client.HTTPException) as e:
                    status = repr(e)
                connection.close()
                seconds = time.monotonic() - begin
                self.slowest_health = max(self.slowest_health, seconds)
                if status != 200 or seconds > HEALTH_SECONDS:
                    self.fail(f"{path}: {status} after {seconds:.1f} s")
                self.count(path)
            self.ending.wait(0.5)

    def watch_memory(self):
        while not self.ending.is_set():
            self.peak = max(self.peak, self.server.status("VmRSS") * 1024)
            if self.server.process.poll() is not None:
                self.fail("the server has ended:\n" + self.server.errors[-2000:])
                return
            self.ending.wait(0.05)

    def repeat(self, client, i):
        rng = random.Random(f"{self.seed} {client.__name__} {i}")
        while not self.ending.is_set():
            client(rng)

    def run(self, seconds, agents):
        good = (self.chat_agent, self.messages_agent, self.responses_agent, self.long_prompt,
                self.reader)
        clients = [good[i % len(good)] for i in range(agents)]
        clients += [self.leaver, self.large_bodies, self.large_bodies, self.nonsense]
        clients += [self.slow_body] * 16
        threads = [threading.Thread(target=self.repeat, args=(c, i)) for i, c in enumerate(clients)]
        threads += [threading.Thread(target=f) for f in (self.watch_health, self.watch_memory)]
        for thread in threads:
            thread.start()
        self.ending.wait(seconds)
        self.ending.set()
        for thread in threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--agents", type=int, default=10, help="clients that behave")
    parser.add_argument("--seed", type=int, default=1)
    given, options = sys.argv[1:], []
    if "--" in given:
        given, options = given[:given.index("--")], given[given.index("--") + 1:]
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.program, args.model, folder, options)
        load = Load(server, args.seed)
        try:
            load.run(args.minutes * 60, args.agents)
            time.sleep(8)  # threads end and memory goes back
            after, n_threads = server.status("VmRSS") * 1024, server.status("Threads")
        finally:
            code = server.end()
    if code != 0:
        load.fail(f"the server's exit status is {code}:\n{server.errors[-2000:]}")
    for what, bytes_ in (("at most", load.peak), ("after the load", after)):
        if bytes_ > server.most_allowed():
            load.fail(f"resident memory {what}: {bytes_ / MIB:.0f} MiB")
    print("requests: " + ", ".join(f"{k} {v}" for k, v in sorted(load.counts.items())))
    print(f"/health and /metrics: at most {load.slowest_health:.2f} s")
    print(f"resident memory: {server.before / MIB:.0f} MiB before, {load.peak / MIB:.0f} at most, "
          f"{after / MIB:.0f} after, {server.most_allowed() / MIB:.0f} allowed; {n_threads} threads "
          "after")
    for failure in load.failures:
        print("FAILED: " + failure)
    return 1 if load.failures else 0


if __name__ == "__main__":
    sys.exit(main())
