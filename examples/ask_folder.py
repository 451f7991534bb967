#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
r"""Questions about every text of a folder. Each file is read once and kept beside it as FILE.kv, so
that a second run of the same model begins with the questions; a file that has changed is read again.

    examples/ask_folder.py models/needle.gguf notes/ \
        "Question: What is the secret number of Rome? Answer: The secret number of Rome is"
"""

import sys
from pathlib import Path

import snapkv


def document_of(model, path):
    """The file's rows, from its .kv if that is newer and this model's."""
    stored = path.with_name(path.name + ".kv")
    if stored.exists() and stored.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        try:
            return model.load_document(stored)
        except snapkv.UsageError as problem:  # of another model
            print(problem, file=sys.stderr)
    document = model.prefill(path.read_text(encoding="utf-8"))
    document.save(stored)
    return document


def main():
    if len(sys.argv) < 4:
        print("usage: examples/ask_folder.py MODEL FOLDER QUESTION...", file=sys.stderr)
        sys.exit(2)
    model_path, folder, *questions = sys.argv[1:]
    model = snapkv.Model(model_path, temperature=0, max_tokens=20, stop="\n", kv_budget=64)
    for path in sorted(Path(folder).glob("*.txt")):
        document = document_of(model, path)
        for question in questions:
            answer = document.ask("\n" + question)
            print(f"{path.name}: {question}{answer}")


if __name__ == "__main__":
    main()
