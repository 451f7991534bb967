# SPDX-License-Identifier: MIT
"""A model in an actor."""

import asyncio
import concurrent.futures
import json
import threading

import ray

from .. import _program
from .._library import UsageError
from .._model import Model

#: Options by their names of the command line, where these differ.
_PLANNED = {"n_ctx": "ctx_size"}


def planned_memory(model, given):
    """Bytes that a prompt of the whole context takes, weights included (``snapkv info``)."""
    chosen = {_PLANNED.get(name, name): value for name, value in given.items()
              if name in _PLANNED or name.startswith("kv_")}
    plan = json.loads(_program.run(["info", "-m", str(model), "--json",
                                    *_program.arguments(chosen)]))
    return plan["memory"]["policy"]["total"]


class _Actor:
    """What runs in the actor's process. Answers are computed in threads; the actor's loop is free
    to cancel them."""

    def __init__(self, model, most_answers, given):
        self._model = Model(model, **given)
        self._threads = concurrent.futures.ThreadPoolExecutor(most_answers)
        self._running = self._done = self._cancelled = 0

    async def _in_thread(self, function, *arguments):
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    async def pieces(self, method, prompt, given):
        """The pieces of an answer as they are written."""
        stopped = threading.Event()
        self._running += 1
        try:
            answer = await self._in_thread(lambda: getattr(self._model, method)(
                prompt, stream=True, progress=lambda *_: not stopped.is_set(), **given))
            while (piece := await self._in_thread(next, answer, None)) is not None:
                yield piece
            self._done += 1
        except (asyncio.CancelledError, GeneratorExit):
            self._cancelled += 1
            raise
        finally:
            stopped.set()
            self._running -= 1

    async def health(self):
        """What :meth:`Engine.health` returns."""
        return {"status": "ok", "model": self._model.info["path"], "answering": self._running,
                "answered": self._done, "cancelled": self._cancelled,
                "node": ray.get_runtime_context().get_node_id()}


class Stream:
    """Iterates over the pieces of an answer as they are written elsewhere; ``async for`` too."""

    def __init__(self, pieces):
        self._pieces = pieces

    def __iter__(self):
        return self

    def __next__(self):
        return ray.get(next(self._pieces))

    def __aiter__(self):
        return self

    async def __anext__(self):
        return await (await self._pieces.__anext__())

    def cancel(self):
        """Ends the answer; what has been written until then can still be read."""
        ray.cancel(self._pieces)


class Engine:
    """A model in a process of its own, on whichever node has room for it.

    >>> engine = snapkv.ray.Engine("model.gguf", cpus=4, kv_budget=1024)
    >>> for piece in engine.chat("Tell me a story.", stream=True):
    ...     print(piece, end="")

    model: a file that every node has under this path. cpus: what Ray gives it, and its threads; gpus:
    the same (the option ``device`` is then "cuda" unless given). memory: bytes; None: what a prompt
    of the whole context takes by the engine's plan. most_answers: answers at a time. Further
    arguments are options (:func:`snapkv.options`). A process that dies is started again.
    """

    def __init__(self, model, cpus=1, gpus=0, memory=None, most_answers=8, **given):
        if cpus < 1:
            raise UsageError(2, f"cpus is {cpus}; an engine needs at least 1")
        if gpus:
            given.setdefault("device", "cuda")
        if memory is None:
            memory = planned_memory(model, given)
        given.setdefault("n_threads", int(cpus))
        self._actor = ray.remote(_Actor).options(
            num_cpus=cpus, num_gpus=gpus, memory=memory, max_restarts=-1, max_task_retries=0,
            max_concurrency=1000).remote(str(model), most_answers, given)

    def _write(self, method, prompt, stream, given):
        pieces = self._actor.pieces.options(num_returns="streaming").remote(method, prompt, given)
        answer = Stream(pieces)
        return answer if stream else "".join(answer)

    def generate(self, prompt, stream=False, **given):
        """The continuation of a text or of ids; with ``stream`` a :class:`Stream` of its pieces."""
        return self._write("generate", prompt, stream, given)

    def chat(self, messages, stream=False, **given):
        """The answer to a message (a str) or a conversation (dicts of role and content)."""
        return self._write("chat", messages, stream, given)

    def health(self, timeout=10):
        """A dict: "status", "model", "node", and how many answers run, were written and cancelled.

        Raises what Ray raises where the process does not answer."""
        return ray.get(self._actor.health.remote(), timeout=timeout)

    def stop(self):
        """Ends the process."""
        ray.kill(self._actor)
