# SPDX-License-Identifier: MIT
"""Documents that were read once: on storage that all nodes reach (fsspec), and in Ray's object store
while they are in use. A document is named by its content and its model; clients' names point to it."""

import asyncio
import json
import re
from collections import OrderedDict

import fsspec
import numpy
import ray

#: Bytes of documents that stay in the object store; they are on storage in any case.
MOST_BYTES = 4 << 30
#: As the server has them.
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


class Storage:
    """A folder of any of fsspec's file systems: ``/shared/documents``, ``s3://bucket/folder``."""

    def __init__(self, url, options=None):
        self._files, self._root = fsspec.core.url_to_fs(url, **(options or {}))

    def _path(self, model, kind, name):
        return f"{self._root}/{model}/{kind}/{name}"

    def has(self, model, digest):
        """Whether the document with this content is there."""
        return self._files.exists(self._path(model, "documents", f"{digest}.kv"))

    def write(self, model, digest, data):
        """Stores a document. Another name first: nobody sees half of it."""
        path = self._path(model, "documents", f"{digest}.kv")
        self._files.makedirs(self._files._parent(path), exist_ok=True)
        with self._files.open(f"{path}.part", "wb") as file:
            file.write(memoryview(data))
        self._files.mv(f"{path}.part", path)

    def read(self, model, digest):
        """The bytes of a document, as numpy's uint8."""
        with self._files.open(self._path(model, "documents", f"{digest}.kv"), "rb") as file:
            return numpy.frombuffer(file.read(), numpy.uint8)

    def point(self, model, name, facts):
        """Gives a document a name; ``facts`` has its "digest" and what lists say of it."""
        path = self._path(model, "names", f"{name}.json")
        self._files.makedirs(self._files._parent(path), exist_ok=True)
        self._files.pipe_file(path, json.dumps(facts).encode())

    def find(self, model, name):
        """The facts of a name; None: there is no such document."""
        name = name.removesuffix(".kv")
        if not NAME.fullmatch(name):
            return None
        self._files.invalidate_cache()
        try:
            return json.loads(self._files.cat_file(self._path(model, "names", f"{name}.json")))
        except FileNotFoundError:
            return None

    def names(self, model):
        """Every name, sorted."""
        self._files.invalidate_cache()
        try:
            paths = self._files.ls(self._path(model, "names", "").rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return sorted(p.rsplit("/", 1)[-1][:-len(".json")] for p in paths if p.endswith(".json"))

    def remove(self, model, name):
        """Removes a name, and its document unless another name points to it."""
        name = name.removesuffix(".kv")
        facts = self.find(model, name)
        if facts is None:
            return False
        self._files.rm_file(self._path(model, "names", f"{name}.json"))
        others = [self.find(model, other) for other in self.names(model)]
        if not any(other and other["digest"] == facts["digest"] for other in others):
            self._files.rm_file(self._path(model, "documents", f"{facts['digest']}.kv"))
        return True


class Documents:
    """The deployment that all replicas ask. Nothing is lost with it: its successor reads storage."""

    def __init__(self, url, options=None, most_bytes=MOST_BYTES):
        self._storage = Storage(url, options)
        self._most_bytes = most_bytes
        self._kept = OrderedDict()  # (model, digest): (reference, bytes), last used last

    async def find(self, model, name):
        """See :meth:`Storage.find`."""
        return await asyncio.to_thread(self._storage.find, model, name)

    async def store(self, model, name, facts, references):
        """Writes a document, given by a list of one reference to its bytes, unless it is there."""
        if references and not await asyncio.to_thread(self._storage.has, model, facts["digest"]):
            data = await references[0]
            await asyncio.to_thread(self._storage.write, model, facts["digest"], data)
        await asyncio.to_thread(self._storage.point, model, name, facts)

    async def has(self, model, digest):
        """See :meth:`Storage.has`."""
        return await asyncio.to_thread(self._storage.has, model, digest)

    async def fetch(self, model, digest):
        """A list of one reference to the document's bytes in the object store."""
        key = (model, digest)
        if key in self._kept:
            self._kept.move_to_end(key)
            return [self._kept[key][0]]
        data = await asyncio.to_thread(self._storage.read, model, digest)
        # this process owns it, and its node has it: what is lost is lost with this deployment
        reference = ray.put(data)
        self._keep(key, reference, data.nbytes)
        return [reference]

    async def list(self, model):
        """The facts of all documents of a model, by name."""
        names = await asyncio.to_thread(self._storage.names, model)
        found = [(name, await self.find(model, name)) for name in names]
        return {name: facts for name, facts in found if facts is not None}

    async def remove(self, model, name):
        """See :meth:`Storage.remove`."""
        return await asyncio.to_thread(self._storage.remove, model, name)

    def _keep(self, key, reference, n_bytes):
        self._kept[key] = (reference, n_bytes)
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(n for _, n in self._kept.values()) > self._most_bytes:
            self._kept.popitem(last=False)
