# SPDX-License-Identifier: MIT
"""A cluster of Ray with several nodes on this machine, and clients that put a load on it."""

import http.client
import json
import os
import signal
import socket
import tempfile
import threading
import time
import uuid

MARK = "SNAPKV_TEST_CLUSTER"
os.environ.update({
    "RAY_USAGE_STATS_ENABLED": "0", MARK: uuid.uuid4().hex,
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",  # as `snapkv ray serve` has it
    "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",  # a proxy after 3 s rather than 30, and
    # a node that has died is noticed after 4 s rather than 15: docs/machines.md
    "RAY_health_check_period_ms": "1000", "RAY_health_check_failure_threshold": "4"})

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

MEMORY = 150 << 20  # of each node's object store


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Nodes:
    """A head and ``n`` more nodes, with Serve at :attr:`port`."""

    def __init__(self, n, cpus=2, head_cpus=1):
        self._folder = tempfile.TemporaryDirectory(prefix="ray-")
        node = {"object_store_memory": MEMORY, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={
            **node, "num_cpus": head_cpus, "temp_dir": self._folder.name})
        self.others = [self.add(cpus) for _ in range(n)]
        ray.init(address=self.cluster.address, log_to_driver=False)
        self.port = free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": self.port})

    def add(self, cpus=2):
        return self.cluster.add_node(num_cpus=cpus, object_store_memory=MEMORY)

    def stop(self):
        serve.shutdown()
        ray.shutdown()
        self.cluster.shutdown()
        try:
            self._folder.cleanup()
        except OSError:  # a process of Ray was still writing its log
            pass


def processes(name):
    """Process ids of this cluster whose titles contain ``name``."""
    found, mark = [], f"{MARK}={os.environ[MARK]}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as title, \
                    open(f"/proc/{pid}/environ", "rb") as environment:
                if name.encode() in title.read() and mark in environment.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def node_with(name, nodes):
    """The first of some nodes that has such a process."""
    for node in nodes:
        raylets = [info.process.pid for infos in node.all_processes.values() for info in infos]
        for pid in processes(name):
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                if int(stat.read().rsplit(")", 1)[1].split()[1]) in raylets:
                    return node
    raise LookupError(f"no node has a process {name}")


def kill(name):
    """Kills one process of this cluster; returns its id."""
    pid = processes(name)[0]
    os.kill(pid, signal.SIGKILL)
    return pid


def request(port, method, path, body=None, headers=None, timeout=120):
    """(status, bytes, headers) of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers or {})
        response = connection.getresponse()
        return response.status, response.read(), dict(response.headers)
    finally:
        connection.close()


def ask(port, body, path="/v1/chat/completions"):
    """The JSON of an answer that must be there."""
    status, answer, _ = request(port, "POST", path, body)
    assert status == 200, (status, answer[:500])
    return json.loads(answer)


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


def stream(port, body, timeout=60):
    """("whole", text) or ("error", what the client sees). Anything else is a broken promise:
    ("broken", what came)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": True}))
        response = connection.getresponse()
        data = response.read()
    except (OSError, http.client.HTTPException) as problem:
        return "error", repr(problem)
    finally:
        connection.close()
    if response.status != 200:
        return "error", f"{response.status} {data[:200]!r}"
    text, ended = "", False
    for line in data.decode("utf-8", "replace").splitlines():
        if line == "data: [DONE]":
            ended = True
        elif line.startswith("data: "):
            event = json.loads(line[len("data: "):])
            if "error" in event:
                return "error", event["error"]["message"]
            for choice in event.get("choices", ()):
                text += choice["delta"].get("content") or ""
    return ("whole", text) if ended else ("broken", data[-200:])


class Load:
    """Clients that stream the same requests over and over; each must get what is ``expected``."""

    def __init__(self, port, bodies, expected, clients=3):
        self._port, self._bodies, self._expected = port, bodies, expected
        self.whole, self.errors, self.broken = [], [], []  # times and texts
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(clients)]

    def _run(self, i):
        while not self._ended.is_set():
            i += 1
            kind, text = stream(self._port, self._bodies[i % len(self._bodies)])
            if kind == "whole" and text != self._expected[i % len(self._bodies)]:
                kind = "broken"
            {"whole": self.whole, "error": self.errors, "broken": self.broken}[kind].append(
                (time.monotonic(), text))
            if kind == "error":
                time.sleep(0.1)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def rate(self, begin, end):
        """Whole answers for each second of a time."""
        return sum(begin <= t < end for t, _ in self.whole) / (end - begin)
