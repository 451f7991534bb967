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
    # a token of this cluster's own: Ray would make one in the user's home
    "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid.uuid4().hex + uuid.uuid4().hex,
    # as `snapkv ray serve` has them (snapkv.ray._command.ENVIRONMENT)
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1", "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",
    # Ray's own is 15, with which workers wait for whatever else the machine does
    "RAY_worker_niceness": "0",
    # a node that has died is noticed after 4 s rather than 15: docs/machines.md
    "RAY_health_check_period_ms": "1000", "RAY_health_check_failure_threshold": "4"})

import ray  # noqa: E402
from ray import serve  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

MEMORY = 150 << 20  # of each node's object store
STARTS = 5  # attempts to start a node


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Nodes:
    """A head and ``n`` more nodes, with Serve at :attr:`port`."""

    def __init__(self, n, cpus=2, head_cpus=1):
        self._folder = tempfile.TemporaryDirectory(prefix="ray-")
        # sessions and the current cluster's address, so that those of the user stay as they are
        os.environ["RAY_TMPDIR"] = self._folder.name
        self.cluster = Cluster()
        # ports of its own: the user may have a cluster
        self._add(num_cpus=head_cpus, include_dashboard=False, dashboard_port=free_port(),
                  dashboard_agent_listen_port=free_port())
        self.others = [self._add(num_cpus=cpus) for _ in range(n)]
        ray.init(address=self.cluster.address, log_to_driver=False)
        self.port = free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": self.port})

    def _add(self, **given):
        """Adds a node. Ray gives one 30 s to start, which is too short on a very busy machine."""
        for attempt in range(STARTS):
            try:
                return self.cluster.add_node(object_store_memory=MEMORY, **given)
            except Exception as problem:  # Ray raises nothing more special
                if "timed out during startup" not in str(problem) or attempt + 1 == STARTS:
                    raise
        return None

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
        self.whole, self.errors, self.broken = [], [], []  # (end, text, beginning)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(clients)]

    def _run(self, i):
        while not self._ended.is_set():
            i += 1
            begin = time.monotonic()
            kind, text = stream(self._port, self._bodies[i % len(self._bodies)])
            if kind == "whole" and text != self._expected[i % len(self._bodies)]:
                kind = "broken"
            {"whole": self.whole, "error": self.errors, "broken": self.broken}[kind].append(
                (time.monotonic(), text, begin))
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

    def rate(self, begin, end, begun=0.0):
        """Whole answers for each second of a time, of those that were asked for after ``begun``."""
        return sum(begin <= t < end and b >= begun for t, _, b in self.whole) / (end - begin)

    def wait(self, answers, begun, seconds=120):
        """Waits for so many whole answers that were asked for after ``begun``; returns whether they
        have come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if sum(b >= begun for _, _, b in self.whole) >= answers:
                return True
            time.sleep(0.1)
        return False
