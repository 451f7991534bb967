# SPDX-License-Identifier: MIT
"""The Serve application: an ingress that passes requests on, replicas that compute, and documents."""

import json
import logging

from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.exceptions import RayServeException
from ray.exceptions import RayError
from starlette.responses import Response, StreamingResponse

from .. import _program
from .._library import UsageError
from . import _requests
from ._documents import Documents
from ._replica import Replica

_log = logging.getLogger("ray.serve")

_SNAPSHOTS = "/v1/kv/snapshots"
#: How often a request is begun anew when the replica dies before the answer has begun.
RETRIES = 3


class Ingress:
    """Passes requests on to replicas, and their answers back as they come."""

    def __init__(self, replicas, readers=None, has_documents=False, read_from=8192):
        self._replicas, self._readers = replicas, readers
        self._has_documents, self._read_from = has_documents, read_from

    async def __call__(self, request):
        path = request.url.path
        body = await request.body()
        value = _requests.parse(body) if path in _requests.PROMPTS else {}
        asked = {"method": request.method, "path": path, "query": dict(request.query_params),
                 "headers": list(request.headers.items()), "body": body,
                 "pieces": _requests.pieces(path, value), "snapshot": _requests.snapshot(value)}
        if path == "/metrics" and request.method == "GET":
            return Response(await self._metrics(), media_type="text/plain; version=0.0.4")
        if path.startswith(_SNAPSHOTS):
            return await self._snapshots(asked)
        try:
            if (self._readers is not None and path in _requests.PROMPTS and not asked["snapshot"]
                    and request.method == "POST" and len(body) >= self._read_from):
                refused = await self._read(asked)
                if refused is not None:
                    return refused
            return await self._answer(asked)
        except (RayError, RayServeException) as problem:
            _log.warning("%s %s: %s", request.method, path, problem)
            return _failed(path)

    async def _read(self, asked):
        """Lets another replica read the prompt; its refusal, or None."""
        read = await _again(lambda: self._readers.read.remote(asked))
        if "prompt" in read:
            asked["prompt"] = read["prompt"]
        elif _requests.parse(read["body"]).get("error", {}).get("code") != "not_supported":
            return Response(read["body"], read["status"], media_type="application/json")
        return None

    async def _answer(self, asked):
        stream = None
        for attempt in range(RETRIES):
            stream = self._replicas.options(stream=True).answer.remote(asked)
            try:
                status, headers = await anext(stream)
                kind = dict((k.lower(), v) for k, v in headers).get("content-type", "")
                if kind.startswith(("text/event-stream", "application/x-ndjson")):
                    return StreamingResponse(_parts(stream, asked["path"], kind), status,
                                             dict(headers), media_type=kind)
                return Response(b"".join([part async for part in stream]), status, dict(headers),
                                media_type=kind)
            except (RayError, RayServeException):
                if attempt + 1 == RETRIES:
                    raise
                asked.pop("prompt", None)  # its bytes may have gone too
            except BaseException:
                stream.cancel()  # the client has gone
                raise
        return None

    async def _snapshots(self, asked):
        if not self._has_documents:
            return Response(json.dumps(_requests.error(
                asked["path"], "this application keeps no documents: it was started without "
                "'documents'", "not_supported")), 501, media_type="application/json")
        method = {("POST", True): "store_document", ("GET", True): "list_documents",
                  ("DELETE", False): "remove_document"}.get(
                      (asked["method"], asked["path"] == _SNAPSHOTS))
        if method is None:
            return await self._answer(asked)
        try:
            status, body = await _again(lambda: getattr(self._replicas, method).remote(asked))
        except (RayError, RayServeException) as problem:
            _log.warning("%s %s: %s", asked["method"], asked["path"], problem)
            return _failed(asked["path"])
        return Response(body, status, media_type="application/json")

    async def _metrics(self):
        """The numbers of all replicas, each with the label `replica`."""
        families, texts = {}, []
        for kind, handle in (("replica", self._replicas), ("reader", self._readers)):
            if handle is not None:
                found = await handle.broadcast("metrics").results_async()
                texts += [(f"{kind}-{i}", text) for i, text in enumerate(found)]
        for label, text in texts:
            family = None
            for line in text.splitlines():
                if line.startswith("#"):
                    family = families.setdefault(line.split(" ", 3)[2], {"head": [], "samples": []})
                    if line not in family["head"]:
                        family["head"].append(line)
                elif line and family is not None:
                    name, _, number = line.rpartition(" ")
                    labels = f'replica="{label}"'
                    name = (f"{name[:-1]},{labels}}}" if name.endswith("}") else
                            f"{name}{{{labels}}}")
                    family["samples"].append(f"{name} {number}")
        return "\n".join(line for family in families.values()
                         for line in family["head"] + family["samples"]) + "\n"


async def _again(call):
    """The result of a call, which is made again where its replica dies."""
    for attempt in range(RETRIES):
        try:
            return await call()
        except (RayError, RayServeException):
            if attempt + 1 == RETRIES:
                raise
    return None


async def _parts(stream, path, kind):
    """The rest of an answer. Where its replica dies the client is told, and the connection is cut:
    half an answer must not look like a whole one."""
    done = False
    try:
        async for part in stream:
            yield part
        done = True
    except (RayError, RayServeException) as problem:
        _log.warning("%s: an answer was cut off: %s", path, problem)
        yield _requests.error_event(path, kind, "the replica that wrote the answer has gone; "
                                    "the answer is incomplete")
        raise
    finally:
        if not done:
            stream.cancel()


def _failed(path):
    message = "no replica could answer the request; it may be sent again"
    return Response(json.dumps(_requests.error(path, message)), 503, {"Retry-After": "1"},
                    media_type="application/json")


def words(model, cpus=1, **given):
    """The options of `snapkv serve` for a replica, as a list of words."""
    if cpus >= 1:
        given.setdefault("threads", int(cpus))
    return ["-m", str(model), *_program.arguments(given)]


def app(model, replicas=1, prefill_replicas=0, documents=None, cpus=1, gpus=0, memory=None,
        autoscale=None, parallel=16, most_requests=64, read_from=8192, most_ahead=4, router=None,
        ingress_replicas=1, storage_options=None, options=(), **given):
    """An application for ``serve.run``: the APIs of ``snapkv serve``.

    model: a file that every node has under this path. replicas: processes with the model;
    ``autoscale``: (least, most) of them instead, by the number of requests. cpus, gpus, memory (in
    bytes): what Ray gives each; ``cpus`` is also its number of threads.

    prefill_replicas: processes that read prompts of at least ``read_from`` bytes for the others,
    which then only write answers. documents: a folder or URL (fsspec; ``storage_options`` are its
    arguments) that all nodes reach, where /v1/kv/snapshots are kept; None: there are none.

    parallel: answers that a replica writes at a time. most_requests: requests that it takes; more
    wait at the ingress. most_ahead: how many more requests than the least busy one a replica may
    have to get one more because it has read the prompt's beginning. router: a request router of
    Serve instead of that (the name of a class, or the class).

    Further arguments are options of ``snapkv serve`` (``kv_budget=512``), ``options`` words of its
    command line.
    """
    if prefill_replicas < 0 or replicas < 1:
        raise UsageError(2, f"replicas is {replicas}, prefill_replicas {prefill_replicas}: at least "
                            "1 and 0 are needed")
    command = [*words(model, cpus, parallel=parallel, **given), *map(str, options)]
    ways = RequestRouterConfig(
        request_router_class=router or "snapkv.ray.routing.LongestBeginning",
        request_router_kwargs={} if router else {"most_ahead": most_ahead})
    resources = {"num_cpus": cpus, "num_gpus": gpus}
    if memory is not None:
        resources["memory"] = int(memory)
    size = ({"num_replicas": replicas} if autoscale is None else
            {"autoscaling_config": {"min_replicas": autoscale[0], "max_replicas": autoscale[1],
                                    "target_ongoing_requests": parallel}})
    common = {"ray_actor_options": resources, "max_ongoing_requests": most_requests,
              "health_check_period_s": 2, "health_check_timeout_s": 30,
              "graceful_shutdown_timeout_s": 30}
    shelf = None
    if documents is not None:
        shelf = serve.deployment(Documents, name="documents", num_replicas=1,
                                 max_ongoing_requests=1000, ray_actor_options={"num_cpus": 0}
                                 ).bind(str(documents), storage_options)
    replica = serve.deployment(Replica, name="replica", request_router_config=ways, **size, **common
                               ).bind(command, shelf)
    readers = None
    if prefill_replicas:
        readers = serve.deployment(Replica, name="reader", request_router_config=ways,
                                   num_replicas=prefill_replicas, **common).bind(command)
    ingress = serve.deployment(Ingress, name="ingress", num_replicas=ingress_replicas,
                               max_ongoing_requests=10_000, ray_actor_options={"num_cpus": 0})
    return ingress.bind(replica, readers, documents is not None, read_from)


def build(args):
    """The same for a config of Serve: ``import_path: snapkv.ray:build``, with the arguments of
    :func:`app` as ``args``."""
    return app(**args)
