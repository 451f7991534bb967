#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
r"""Python: one document, several questions, the answers as streams.

    examples/answer.py models/needle.gguf examples/facts.txt \
        "Question: What is the secret number of Rome? Answer: The secret number of Rome is"
"""

import sys

import snapkv


def main():
    if len(sys.argv) < 4:
        print("usage: examples/answer.py MODEL FILE QUESTION...", file=sys.stderr)
        sys.exit(2)
    model_path, text_path, *questions = sys.argv[1:]
    model = snapkv.Model(model_path, temperature=0, max_tokens=20, stop="\n")
    with open(text_path, encoding="utf-8") as file:
        document = model.prefill(file.read())  # read once; each question chooses its own rows
    for question in questions:
        print(question, end="")
        for piece in document.ask("\n" + question, kv_budget=64, stream=True):
            print(piece, end="", flush=True)
        print()


if __name__ == "__main__":
    main()
