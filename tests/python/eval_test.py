# SPDX-License-Identifier: MIT
"""snapkv.eval: records of the program as dicts, files that go on, errors as exceptions.

usage: eval_test.py MODEL   (SNAPKV_LIBRARY and SNAPKV_PROGRAM name what was built)
"""

import importlib.util
import json
import os
import sys
import tempfile
import unittest

import snapkv
import snapkv.eval
from snapkv import _program

MODEL = sys.argv.pop(1)
SMALL = dict(lengths=[300], depths=2, policies=["full", "snapkv"], budgets=[32, 128], threads=1)


class Eval(unittest.TestCase):
    def test_records_are_flat_and_those_of_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "needle.jsonl")
            records = snapkv.eval.needle(MODEL, out=path, **SMALL)
            self.assertEqual(len(records), 2 * 3)  # depths x (full, two budgets)
            self.assertEqual(snapkv.eval.read(path), records)
            with open(path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        for record, line in zip(records, lines):
            self.assertEqual(record["score"], line["score"])
            self.assertEqual(record["policy"], line["configuration"]["policy"])
            self.assertEqual(record.get("budget"), line["configuration"].get("budget"))
        self.assertEqual({r["cache"] for r in records}, {"full", "snapkv 32", "snapkv 128"})
        self.assertTrue(all(r["score"] == 1 for r in records if r["cache"] == "full"))

    def test_a_file_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "needle.jsonl")
            first = snapkv.eval.needle(MODEL, out=path, **SMALL)
            with self.assertRaisesRegex(snapkv.UsageError, "needle.jsonl"):
                snapkv.eval.needle(MODEL, out=path, **SMALL)
            more = snapkv.eval.needle(MODEL, out=path, resume=True, **{**SMALL, "depths": 3})
        self.assertEqual(more[:len(first)], first)
        self.assertEqual(len(more), 3 * 3)  # the depths 0 and 1 were there

    def test_every_task_runs_with_a_loaded_model(self):
        model = snapkv.Model(MODEL, n_threads=1)
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text.txt")
            with open(text, "w", encoding="utf-8") as file:
                file.write("The grass is green and the sky is blue. The fox sat by the mill. " * 40)
            data = os.path.join(folder, "questions.jsonl")
            with open(data, "w", encoding="utf-8") as file:
                json.dump({"id": "a", "context": "The special number of Paris is 48213.",
                           "question": "What is the number?", "answers": ["48213"]}, file)
            small = dict(threads=1, policies="snapkv", budgets=64)
            tasks = {
                "turns": dict(lengths=300, questions=2, samples=1, **small),
                "ruler": dict(tasks="niah_single_1", lengths=600, samples=1, **small),
                "fidelity": dict(text=text, lengths=200, n_continue=8, samples=1, **small),
                "qa": dict(data=data, **small),
                "summary": dict(text=text, n_predict=8, refresh_limits=[0, 4], **small),
                "overlap": dict(samples=1, threads=1),
            }
            for name, given in tasks.items():
                with self.subTest(name):
                    records = getattr(snapkv.eval, name)(model, **given)
                    self.assertTrue(records)
                    self.assertTrue(all(r["task"] == name for r in records))

    def test_pandas_takes_them(self):
        if not importlib.util.find_spec("pandas"):
            self.skipTest("needs pandas")
        import pandas
        table = pandas.DataFrame(snapkv.eval.needle(MODEL, **SMALL))
        pivot = table.pivot_table("score", "cache", "length")
        self.assertEqual(pivot.loc["full", 300], 1)

    def test_errors_are_the_packages(self):
        with self.assertRaisesRegex(snapkv.UsageError, "--budget"):
            snapkv.eval.needle(MODEL, budget=3)
        with self.assertRaisesRegex(snapkv.Error, "no/such/model"):
            snapkv.eval.needle("no/such/model.gguf", **SMALL)
        with self.assertRaises(snapkv.ContextError):
            snapkv.eval.needle(MODEL, lengths=[100000], depths=1)

    def test_options_are_words(self):
        self.assertEqual(_program.arguments({"kv_budget": 512, "chat": True, "html": None,
                                             "keep_full": False, "budgets": [1, 2]}),
                         ["--kv-budget", "512", "--chat", "--budgets", "1,2"])

    def test_a_missing_program_is_named(self):
        before = os.environ["SNAPKV_PROGRAM"]
        os.environ["SNAPKV_PROGRAM"] = "/no/such/program"
        try:
            with self.assertRaisesRegex(snapkv.UsageError, "/no/such/program"):
                snapkv.eval.needle(MODEL)
        finally:
            os.environ["SNAPKV_PROGRAM"] = before


if __name__ == "__main__":
    unittest.main()
