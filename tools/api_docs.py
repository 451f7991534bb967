#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The API documentation as HTML: cpp/ (C++ and C, by Doxygen) and python/ (by pdoc) under OUT.

  tools/api_docs.py OUT [--only cpp|python]

A warning of either is an error. SNAPKV_LIBRARY names libsnapkv_c.so, which the Python package is
imported with. Modules of the package whose own packages are missing (torch, transformers, lm_eval, ray,
numpy) are left out, which is said. Exits with 77 where Doxygen or pdoc is not there.
"""

import argparse
import importlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ["snapkv.eval", "snapkv.hf", "snapkv.lm_eval", "snapkv.ray"]


def leave(message, status):
    print(message, file=sys.stderr)
    sys.exit(status)


def cpp(out):
    settings = (ROOT / "docs" / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {out}\nHTML_OUTPUT = cpp\n"
    try:
        done = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        leave("skipped: no doxygen (Debian's package has this name)", 77)
    if done.returncode or done.stdout.strip():
        leave(f"{done.stdout}\ndoxygen ended with {done.returncode}", 1)


def python(out):
    try:
        import pdoc
    except ImportError:
        leave("skipped: no pdoc (pip install pdoc)", 77)
    sys.path.insert(0, str(ROOT / "python"))
    names = ["snapkv"]
    for name in MODULES:
        try:
            importlib.import_module(name)
            names.append(name)
        except ImportError as missing:
            print(f"without {name}: {missing}", file=sys.stderr)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        pdoc.render.configure(docformat="restructuredtext", footer_text="snapkv.cpp")
        pdoc.pdoc(*names, output_directory=out / "python")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=["cpp", "python"])
    given = parser.parse_args()
    out = given.out.absolute()
    os.makedirs(out, exist_ok=True)
    for name, make in (("cpp", cpp), ("python", python)):
        if given.only in (None, name):
            make(out)
            print(out / name / "index.html")


if __name__ == "__main__":
    main()
