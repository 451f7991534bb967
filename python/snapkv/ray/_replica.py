# SPDX-License-Identifier: MIT
"""The deployment whose replicas compute: each has the server of ``snapkv serve`` in its process."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid

import aiohttp
import numpy
import ray
from ray.serve import metrics

from .. import _server
from . import _requests

#: Seconds between two looks at the server's numbers for Serve's metrics.
METRICS_PERIOD = 5
#: Headers of a client that concern its own connection, or are set anew.
_OWN_HEADERS = {"connection", "content-length", "transfer-encoding", "host", "keep-alive", "expect",
                "upgrade", "te", "accept-encoding"}
#: Memory of the node where prompts are written on their way into the object store.
_SHARED_MEMORY = "/dev/shm"


def remove_abandoned(folder):
    """Removes what replicas left in a folder that were killed: their processes are gone."""
    for name in os.listdir(folder):
        found = re.fullmatch(r"snapkv-replica-(\d+)-\w+", name)
        if found and not os.path.exists(f"/proc/{found[1]}"):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


class Replica:
    """``words``: options of ``snapkv serve``. ``documents``: the handle of Documents, or None.

    A replica whose server cannot start ends with the engine's message, which Serve logs.
    """

    def __init__(self, words, documents=None):
        folder = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
        remove_abandoned(folder or tempfile.gettempdir())
        self._folder = tempfile.mkdtemp(prefix=f"snapkv-replica-{os.getpid()}-", dir=folder)
        self._server = _server.Server([*words, "--snapshot-dir", self._folder])
        self._documents = documents
        self._lent = {}  # name of a document: its digest
        self._lending = asyncio.Lock()
        self._model = None
        self._client = None
        self._gauges = {}
        self._reporting = None

    def __del__(self):
        if getattr(self, "_server", None):
            self._server.stop(20)
        if getattr(self, "_folder", None):
            shutil.rmtree(self._folder, ignore_errors=True)

    # --- the server of this process
    async def _http(self):
        if self._client is None:
            self._client = aiohttp.ClientSession(
                "http://localhost", connector=aiohttp.UnixConnector(self._server.socket, limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=["Accept-Encoding", "User-Agent"])
            self._reporting = asyncio.create_task(self._report())
        return self._client

    async def _call(self, method, path, body=None, headers=None):
        """(status, headers, bytes) of an answer."""
        client = await self._http()
        async with client.request(method, path, data=body, headers=headers) as response:
            return response.status, dict(response.headers), await response.read()

    async def check_health(self):
        """Serve's call: raises unless the server answers that it is well."""
        status, _, body = await self._call("GET", "/health")
        if status != 200:
            raise RuntimeError(f"the server answers {status}: {body.decode('utf-8', 'replace')}")

    async def metrics(self):
        """The server's numbers in Prometheus' text format, for the ingress to merge."""
        _, _, body = await self._call("GET", "/metrics")
        return body.decode()

    async def _report(self):
        """Makes the server's numbers those of Serve, which labels them with the replica."""
        while True:
            try:
                for line in (await self.metrics()).splitlines():
                    name, _, value = line.partition(" ")
                    if line.startswith("snapkv_") and "{" not in name and value:
                        if name not in self._gauges:
                            self._gauges[name] = metrics.Gauge(name, description=name)
                        self._gauges[name].set(float(value))
            except (aiohttp.ClientError, ValueError):
                pass  # check_health() says what is wrong
            await asyncio.sleep(METRICS_PERIOD)

    async def _digest(self):
        """The model's fingerprint, which documents belong to."""
        if self._model is None:
            _, _, body = await self._call("GET", "/api/tags")
            self._model = json.loads(body)["models"][0]["digest"][-16:]
        return self._model

    # --- answers
    async def answer(self, request):
        """Yields the answer's (status, headers), then its bytes as they come."""
        body, name = request["body"], None
        if request.get("prompt"):  # another replica has read it
            name = f"prompt-{uuid.uuid4().hex}"
            self._server.lend(name, await request["prompt"][0])
            value = _requests.parse(body)
            body = json.dumps({**value, "kv": {**(value.get("kv") or {}), "read": name}}).encode()
        elif request.get("snapshot") and self._documents is not None:
            await self._lend_document(request["snapshot"])
        try:
            client = await self._http()
            async with client.request(request["method"], request["path"], params=request["query"],
                                      data=body, headers=_headers(request)) as response:
                yield response.status, [(k, v) for k, v in response.headers.items()
                                        if k.lower() not in _OWN_HEADERS]
                async for part in response.content.iter_any():
                    yield part
        finally:
            if name is not None:
                self._server.withdraw(name)

    async def read(self, request):
        """Reads a request's prompt for another replica: {"prompt": [reference], "bytes": n}, or
        {"status", "body"} where the server refuses it."""
        name = uuid.uuid4().hex
        path = os.path.join(self._folder, f"{name}.prompt")
        query = f"?path={request['path']}&name={name}"
        try:
            status, _, body = await self._call("POST", f"/v1/kv/prompts{query}", request["body"],
                                               _headers(request))
            if status != 200:
                return {"status": status, "body": body}
            data = await asyncio.to_thread(numpy.fromfile, path, numpy.uint8)
            return {"prompt": [ray.put(data)], "bytes": data.nbytes, "facts": json.loads(body)}
        finally:
            if os.path.exists(path):
                os.remove(path)

    # --- documents
    async def _lend_document(self, name):
        """Borrows a document from the object store. An unknown one is the server's error."""
        model = await self._digest()
        facts = await self._documents.find.remote(model, name)
        async with self._lending:
            known = self._lent.get(name)
            if known == (facts and facts["digest"]):
                return
            if known is not None:
                self._server.withdraw(name)
                del self._lent[name]
            if facts is not None:
                references = await self._documents.fetch.remote(model, facts["digest"])
                self._server.lend(name, await references[0])
                self._lent[name] = facts["digest"]

    async def store_document(self, request):
        """(status, bytes): reads a document, unless there is one of this content, and stores it."""
        value, model = _requests.parse(request["body"]), await self._digest()
        name = value.get("name")
        content = {k: v for k, v in value.items() if k != "name"}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        if not isinstance(name, str) or not await self._documents.has.remote(model, digest):
            return await self._read_document(request, model, name, digest)
        stored = [f for f in (await self._documents.list.remote(model)).values()
                  if f["digest"] == digest]
        if not stored:  # all its names were removed while it was being read
            return await self._read_document(request, model, name, digest)
        await self._documents.store.remote(model, name, stored[0], [])
        return 200, json.dumps({**stored[0]["answer"], "name": name}).encode()

    async def _read_document(self, request, model, name, digest):
        status, _, body = await self._call("POST", "/v1/kv/snapshots", request["body"],
                                           _headers(request))
        if status != 200:
            return status, body
        answer = json.loads(body)
        name = answer["name"]
        path = os.path.join(self._folder, f"{name}.kv")
        data = await asyncio.to_thread(numpy.fromfile, path, numpy.uint8)
        status, _, listed = await self._call("GET", "/v1/kv/snapshots", headers=_headers(request))
        entry = next(d for d in json.loads(listed)["data"] if d["name"] == name)
        await self._call("DELETE", f"/v1/kv/snapshots/{name}", headers=_headers(request))
        entry["created"] = int(time.time())
        facts = {"digest": digest, "answer": answer, "entry": entry}
        await self._documents.store.remote(model, name, facts, [ray.put(data)])
        return 200, body

    async def list_documents(self, request):
        """(status, bytes) of GET /v1/kv/snapshots."""
        status, _, body = await self._call("GET", "/v1/kv/snapshots", headers=_headers(request))
        if status != 200:
            return status, body
        found = await self._documents.list.remote(await self._digest())
        data = [{**facts["entry"], "name": name} for name, facts in found.items()]
        return 200, json.dumps({"object": "list", "data": data}).encode()

    async def remove_document(self, request):
        """(status, bytes) of DELETE /v1/kv/snapshots/NAME."""
        name = request["path"].rsplit("/", 1)[-1]
        status, _, body = await self._call("DELETE", f"/v1/kv/snapshots/{name}",
                                           headers=_headers(request))
        if status != 404 or not await self._documents.remove.remote(await self._digest(), name):
            return status, body  # a wrong key or name, or no such document
        return 200, json.dumps({"name": name, "deleted": True}).encode()


def _headers(request):
    return [(k, v) for k, v in request["headers"] if k.lower() not in _OWN_HEADERS or k == "host"]
