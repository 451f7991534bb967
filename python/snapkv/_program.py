# SPDX-License-Identifier: MIT
"""The program ``snapkv`` that came with the package, and how it is run."""

import os
import subprocess
from pathlib import Path

from . import _library as _c


def path():
    """Where the program is: in the wheel, or where SNAPKV_PROGRAM says."""
    given = os.environ.get("SNAPKV_PROGRAM")
    program = Path(given) if given else Path(__file__).parent / "bin" / "snapkv"
    if not os.access(program, os.X_OK):
        raise _c.UsageError(2, f"{program}: no such program; SNAPKV_PROGRAM may name it")
    return str(program)


def arguments(given):
    """Options by Python name as the command line takes them: ``kv_budget=512`` is ``--kv-budget
    512``, a list is joined by commas, True is the option alone, and None and False are left out."""
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple, range)):
            words += [option, ",".join(str(v) for v in value)]
        else:
            words += [option, str(value)]
    return words


def run(words):
    """What the program writes to stdout. Its errors become those of the package, whose codes are its
    exit codes; what it reports while it works goes to stderr."""
    done = subprocess.run([path(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode:
        message = done.stderr.decode("utf-8", "replace").strip().removeprefix("error: ")
        raise _c.error(done.returncode, message or f"snapkv ended with {done.returncode}")
    return done.stdout.decode()
