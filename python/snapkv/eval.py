# SPDX-License-Identifier: MIT
"""The evaluations of ``snapkv eval``, as lists of records.

    import pandas, snapkv.eval

    records = snapkv.eval.needle("model.gguf", lengths=[1000, 4000], depths=5,
                                 policies=["full", "snapkv"], budgets=[64, 256])
    table = pandas.DataFrame(records)
    print(table.pivot_table("score", "cache", "length"))

Each function runs the program's task of its name; keywords are the task's options with ``_`` for
``-`` (``snapkv eval TASK --help-all`` and docs/evaluation.md describe them). A record is a dict: one
prompt in one configuration, with the fields that docs/evaluation.md lists. ``configuration`` is a
dict in the files of the program; here its entries are fields too (``policy``, ``budget``, ...; with
``kv_`` before a name that the record has), and ``cache`` is their short name. Sizes are bytes, lengths and budgets tokens (rows), depths and scores
shares from 0 to 1.

``out`` keeps the records in a file of JSON lines; with ``resume=True`` those that are there already
are not computed again, and all of the file are returned.

``ray=True`` spreads the task over a cluster of Ray (``pip install snapkv[ray]``), one process for
each of its ``lengths``, or of its ``tasks`` where it has no lengths; the model is a file that every
node has. ``out`` is not possible then.
"""

import json
import os
import tempfile

from . import _program
from ._model import Model


def _record(line):
    record = json.loads(line)
    del record["key"]
    configuration = record.pop("configuration", {})
    record["cache"] = " ".join(str(configuration[name]) for name in ("policy", "budget")
                               if name in configuration)
    for name, value in configuration.items():
        record[f"kv_{name}" if name in record else name] = value
    return record


def read(path):
    """The records of a file that ``snapkv eval --out`` has written."""
    with open(path, encoding="utf-8") as lines:
        return [_record(line) for line in lines if line.strip()]


def _run(task, model, given):
    if isinstance(model, Model):
        model = model.info["path"]
    if given.pop("ray", False):
        from .ray import _evaluation  # pylint: disable=import-outside-toplevel
        return _evaluation.run(task, model, given)
    out = given.pop("out", None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.fspath(out) if out is not None else os.path.join(folder, "records.jsonl")
        _program.run(["eval", task, "--no-progress", "-m", os.fspath(model),
                      *_program.arguments({**given, "out": path})])
        return read(path)


def needle(model, **given):
    """Facts hidden in long filler text, at ``lengths`` x ``depths`` x ``samples``."""
    return _run("needle", model, given)


def turns(model, **given):
    """Several questions about one document, one after the other."""
    return _run("turns", model, given)


def ruler(model, **given):
    """RULER's synthetic tasks."""
    return _run("ruler", model, given)


def fidelity(model, **given):
    """How far the predictions of a text's next tokens move (``text``: the file)."""
    return _run("fidelity", model, given)


def qa(model, **given):
    """Questions about real texts (``data``: a file of questions, ``texts``: a folder)."""
    return _run("qa", model, given)


def summary(model, **given):
    """How many facts summaries of whole texts name (``texts``: those of ``make texts``; or ``text``)."""
    return _run("summary", model, given)


def quality(model, **given):
    """How many of its answers a model keeps with fewer rows (``texts``: those of ``make texts``)."""
    return _run("quality", model, given)


def longbench(model, **given):
    """LongBench (``data`` and ``prompts``: your copy of its files)."""
    return _run("longbench", model, given)


def overlap(model, **given):
    """Whether the prompt's window predicts what the answer attends to."""
    return _run("overlap", model, given)


__all__ = ["fidelity", "longbench", "needle", "overlap", "qa", "quality", "read", "ruler", "summary",
           "turns"]
