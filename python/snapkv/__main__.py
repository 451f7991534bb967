# SPDX-License-Identifier: MIT
"""The command ``snapkv``: the program of the wheel."""

import os
import sys

from . import _program


def main():
    """Becomes the program, with the arguments of this process; ``snapkv ray`` is Python's own."""
    if sys.argv[1:2] == ["ray"]:
        from .ray import _command  # pylint: disable=import-outside-toplevel
        sys.exit(_command.main(sys.argv[2:]))
    program = _program.path()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
