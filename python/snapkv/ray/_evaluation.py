# SPDX-License-Identifier: MIT
"""The evaluations of snapkv.eval, each part in a process of a cluster."""

import ray

from .. import eval as _eval
from .._library import UsageError

#: Options that tasks are split by: each of their values has records of its own.
_SPLIT = ("lengths", "tasks")


def run(task, model, given):
    """The records of all parts, in the order in which one process would have written them."""
    for name in ("out", "resume"):
        if given.get(name):
            raise UsageError(2, f"{name} is not possible with ray=True: the records are returned")
    split = next((name for name in _SPLIT if isinstance(given.get(name), (list, tuple))), None)
    parts = [{**given, split: [value]} for value in given[split]] if split else [given]
    compute = ray.remote(_part).options(num_cpus=given.get("threads", 1), max_retries=2)
    found = ray.get([compute.remote(task, model, part) for part in parts])
    return [record for records in found for record in records]


def _part(task, model, given):
    return getattr(_eval, task)(model, **given)
