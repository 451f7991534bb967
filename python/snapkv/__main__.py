# SPDX-License-Identifier: MIT
"""The command ``snapkv``: the program of the wheel."""

import os
import sys
from pathlib import Path


def main():
    """Becomes the program, with the arguments of this process."""
    program = Path(__file__).parent / "bin" / "snapkv"
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
