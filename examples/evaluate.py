#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Batch evaluation: the needle test of several models, policies and budgets, as one table of CSV.

    examples/evaluate.py needle.csv models/needle.gguf [MODEL ...]

The records stay beside the table (needle.csv.jsonl, one file for each model), so a run that was
interrupted goes on where it stopped.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import snapkv.eval

FIELDS = ["model", "cache", "length", "n", "score", "kv_mib"]


def rows(path, records):
    """A row for each cache and length: how many prompts, the mean score, the mean size."""
    cells = defaultdict(list)
    for record in records:
        cells[record["cache"], record["length"]].append(record)
    for (cache, length), own in cells.items():
        yield {"model": Path(path).name, "cache": cache, "length": length, "n": len(own),
               "score": round(sum(r["score"] for r in own) / len(own), 3),
               "kv_mib": round(sum(r["kv_bytes"] for r in own) / len(own) / 2**20, 3)}


def main():
    if len(sys.argv) < 3:
        print("usage: examples/evaluate.py TABLE.csv MODEL...", file=sys.stderr)
        sys.exit(2)
    out, *models = sys.argv[1:]
    with open(out, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, FIELDS)
        table.writeheader()
        for i, path in enumerate(models):
            kept = Path(f"{out}.{i}.jsonl" if i else f"{out}.jsonl")
            records = snapkv.eval.needle(path, lengths=[500, 1000], depths=3, out=kept, resume=True,
                                         policies=["full", "snapkv", "streaming-llm"],
                                         budgets=[32, 128])
            table.writerows(rows(path, records))
            file.flush()


if __name__ == "__main__":
    main()
