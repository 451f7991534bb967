# SPDX-License-Identifier: MIT
"""The notebook of examples/ is stored without outputs and runs to its end with the repository's model;
both figures are drawn and SnapKV's cache does not grow with the prompt.

usage: notebook_test.py ROOT   (SNAPKV_LIBRARY, SNAPKV_PROGRAM, PYTHONPATH as the package)
Needs nbclient, ipykernel, pandas and matplotlib; exits with 77 without them.
"""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

NOTEBOOK = Path(sys.argv[1]) / "examples" / "figures.ipynb"
LIMIT = 300  # seconds, on a busy machine; a free one takes a few


def check_stored(cells):
    """Whether the file holds what people wrote and no results."""
    for cell in cells:
        if cell.get("outputs") or cell.get("execution_count"):
            sys.exit(f"{NOTEBOOK}: a cell has outputs; it must be stored without them")


def main():
    check_stored(json.loads(NOTEBOOK.read_text())["cells"])
    missing = [name for name in ("nbclient", "nbformat", "ipykernel", "pandas", "matplotlib")
               if not importlib.util.find_spec(name)]
    if missing:
        print(f"skipped: no {', '.join(missing)}")
        sys.exit(77)
    import nbclient
    import nbformat
    os.environ.pop("SNAPKV_MODEL", None)
    book = nbformat.read(NOTEBOOK, as_version=4)
    book.cells.append(nbformat.v4.new_code_cell(
        "print(records.groupby('cache')['score'].mean().to_dict(), "
        "costs.groupby('cache')['bytes'].agg(lambda b: b.max() / b.min()).to_dict())"))
    start = time.monotonic()
    nbclient.NotebookClient(book, timeout=LIMIT, kernel_name="python3",
                            resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    pictures = [output for cell in book.cells for output in cell.get("outputs", [])
                if "image/png" in output.get("data", {})]
    if len(pictures) != 2:
        sys.exit(f"{len(pictures)} pictures; expected 2")
    numbers = book.cells[-1].outputs[0].text
    scores, growth = (json.loads("{" + part.replace("'", '"') + "}")
                      for part in numbers.strip()[1:-1].split("} {"))
    print(f"{time.monotonic() - start:.0f} s: {numbers}", end="")
    if scores["full"] < 1 or scores["snapkv-max 128"] < 0.9 or scores["streaming-llm 128"] > 0.5:
        sys.exit("expected full 1, snapkv-max at least 0.9, streaming-llm at most 0.5")
    if growth["full"] < 6 or growth["snapkv-max 128"] > 1.3:
        sys.exit("expected the full cache to grow by 8, SnapKV's not")


if __name__ == "__main__":
    main()
