#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures --cite: how often the sentences that it names hold the answer.

  snapkv eval make-qa --texts texts/prose --kinds fact --per-text 1 --bytes 20000 -o facts.jsonl
  eval/citations.py --snapkv PROGRAM -m MODEL facts.jsonl [generate's options, as --kv-budget 512]

Each line of the file is a real text with a fact put between two of its sentences, and questions about
it. Counts questions that are answered rightly. A cited sentence is right if the fact's answer begins
in it. Prints precision (right among the cited), recall (answers whose fact is cited), and what the
trace costs in decoding time, from runs with and without it in turns.
"""

import argparse
import json
import subprocess
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--snapkv", default="build/release/bin/snapkv")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("data")
    options, more = parser.parse_known_args()
    asked = answered = cited = right = found = 0
    decode = {True: 0.0, False: 0.0}
    with open(options.data, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines][:options.limit]
    for record in records:
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as document:
            document.write(record["context"])
            document.flush()
            for question in record["questions"]:
                text = f"Question: {question['question']}\nAnswer: {question.get('prefix', '')}"
                runs = {}
                for cites in (True, False):
                    command = [options.snapkv, "generate", "-m", options.model, "-f", document.name,
                               "-p", text, "--no-chat", "--temp", "0", "-n", "24", "--json",
                               "--no-progress", *(["--cite"] if cites else []), *more]
                    runs[cites] = json.loads(subprocess.run(command, check=True, text=True,
                                                            capture_output=True).stdout)
                    decode[cites] += runs[cites]["timings"]["decode_seconds"]
                asked += 1
                answer = runs[True]["text"].lower()
                if not any(a.lower() in answer for a in question["answers"]):
                    continue
                answered += 1
                # the program's offsets are bytes, like the data's
                hits = [s["begin"] <= question["at"] < s["end"] for s in runs[True]["sources"]]
                cited += len(hits)
                right += sum(hits)
                found += any(hits)
                print(f"{asked:4} {question['id']}: {len(hits)} cited, {'found' if any(hits) else 'missed'}",
                      flush=True)
    print(f"{answered} of {asked} answered; precision {right} of {cited} = {right / max(1, cited):.1%}, "
          f"recall {found} of {answered} = {found / max(1, answered):.1%}; decoding took "
          f"{decode[True] / max(1e-9, decode[False]):.3f} times as long")


if __name__ == "__main__":
    main()
