# SPDX-License-Identifier: MIT
"""The command ``snapkv ray serve``."""

import argparse
import os
import signal
import sys
import threading

import ray
from ray import serve

from .._library import Error
from ._serving import app

_ABOUT = """Serve the APIs of `snapkv serve` from many processes, on one machine or a cluster of Ray.
All options that are not listed here are those of `snapkv serve`, which see, and go to each process:
snapkv ray serve -m model.gguf --replicas 4 --kv-budget 1024"""


#: Environment of the clusters that the command starts: less time for each token of a stream, a dead
#: proxy is replaced after 3 s rather than 30, and an ingress that stops does not wait 30 s for load
#: balancers to notice: there are none.
ENVIRONMENT = {"RAY_SERVE_THROUGHPUT_OPTIMIZED": "1", "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "1",
               "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0"}


def _parser():
    parser = argparse.ArgumentParser(prog="snapkv ray", description="snapkv on Ray",
                                     allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("serve", description=_ABOUT, allow_abbrev=False,
                              formatter_class=argparse.RawDescriptionHelpFormatter).add_argument
    add("-m", "--model", required=True, metavar="FILE", help="every node has it under this path")
    add("--replicas", type=int, default=1, metavar="N", help="processes that answer [1]")
    add("--most-replicas", type=int, metavar="N",
        help="more of them, up to N, where requests wait")
    add("--prefill-replicas", type=int, default=0, metavar="P",
        help="processes that read long prompts for the others [0]")
    add("--read-from", type=int, default=8192, metavar="BYTES",
        help="bytes of a request from which they do [8192]")
    add("--cpus", type=float, default=1, metavar="N", help="of each process, also its threads [1]")
    add("--gpus", type=float, default=0, metavar="N", help="of each process [0]")
    add("--parallel", type=int, default=16, metavar="N",
        help="answers that a process writes at a time [16]")
    add("--documents", metavar="URL",
        help="folder, or URL of fsspec (s3://bucket/folder), for the documents of "
        "/v1/kv/snapshots; all nodes reach it")
    add("--address", metavar="ADDRESS",
        help="a running cluster: auto, or HOST:6379 [a new one, of this machine]")
    add("--host", default="127.0.0.1", metavar="ADDRESS",
        help="address to listen on; 0.0.0.0: all of this machine [127.0.0.1]")
    add("--port", type=int, default=8080, metavar="N", help="port to listen on [8080]")
    add("--name", default="snapkv", metavar="NAME", help="the application's name in Serve [snapkv]")
    return parser


def main(words):
    """Runs the command; returns its exit code."""
    settings, rest = _parser().parse_known_args(words)
    try:
        return _serve(settings, rest)
    except Error as problem:
        print(f"snapkv: error: {problem}", file=sys.stderr)
        return problem.code


def _reasons(name):
    """What Serve says of the parts of an application that did not start, one line each."""
    application = serve.status().applications.get(name)
    found = application.deployments.items() if application else ()
    return "".join(f"\n{part}: {status.message.strip().splitlines()[-1]}"
                   for part, status in found if status.message)


def _serve(settings, rest):
    autoscale = None
    if settings.most_replicas is not None:
        autoscale = (settings.replicas, settings.most_replicas)
    application = app(settings.model, replicas=settings.replicas, autoscale=autoscale,
                      prefill_replicas=settings.prefill_replicas, read_from=settings.read_from,
                      cpus=settings.cpus, gpus=settings.gpus, parallel=settings.parallel,
                      documents=settings.documents, options=[*rest, "--host", settings.host])
    if settings.address is None:
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    ray.init(address=settings.address, include_dashboard=False, log_to_driver=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    serve.start(http_options={"host": settings.host, "port": settings.port})
    try:
        serve.run(application, name=settings.name)
        print(f"snapkv: ready: http://{settings.host}:{settings.port}", file=sys.stderr, flush=True)
        ended.wait()
    except RuntimeError as problem:  # of Serve: a replica did not start
        raise Error(1, f"{problem}{_reasons(settings.name)}") from problem
    finally:
        if settings.address is None:
            serve.shutdown()
        else:
            serve.delete(settings.name)
        ray.shutdown()
    return 0
