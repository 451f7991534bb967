# SPDX-License-Identifier: MIT
"""The Python programs of examples/ run and print what their first lines say.

usage: python_examples_test.py ROOT   (SNAPKV_LIBRARY, SNAPKV_PROGRAM, PYTHONPATH as the package)
"""

import csv
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))
EXAMPLES = ROOT / "examples"
MODEL = ROOT / "models" / "needle.gguf"
QUESTION = "Question: What is the secret number of Rome? Answer: The secret number of Rome is"


def run(name, *arguments):
    done = subprocess.run([sys.executable, "-B", EXAMPLES / name, *arguments], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise AssertionError(f"{name} ended with {done.returncode}\n{done.stderr}")
    return done.stdout


class Examples(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        self.addCleanup(self._folder.cleanup)

    def test_answer(self):
        out = run("answer.py", MODEL, EXAMPLES / "facts.txt", QUESTION)
        self.assertEqual(out, f"{QUESTION} 48213.\n")

    def test_without_arguments_they_say_how_they_are_used(self):
        for name in ("answer.py", "ask_folder.py", "evaluate.py"):
            done = subprocess.run([sys.executable, "-B", EXAMPLES / name], check=False,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"usage: examples/{name} ", done.stderr)

    def test_ask_folder(self):
        shutil.copy(EXAMPLES / "facts.txt", self.folder / "b.txt")
        (self.folder / "a.txt").write_text("The path was old.\nThe secret number of Rome is 21769.\n"
                                           "The day was cold.\n")
        expected = f"a.txt: {QUESTION} 21769.\nb.txt: {QUESTION} 48213.\n"
        self.assertEqual(run("ask_folder.py", MODEL, self.folder, QUESTION), expected)
        stored = self.folder / "a.txt.kv"
        written = stored.stat().st_mtime_ns
        self.assertEqual(run("ask_folder.py", MODEL, self.folder, QUESTION), expected)
        self.assertEqual(stored.stat().st_mtime_ns, written)  # was not read again

    def test_evaluate(self):
        table = self.folder / "needle.csv"
        run("evaluate.py", table, MODEL)
        with open(table, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2 * (1 + 2 * 2))  # lengths x (full, policies x budgets)
        scores = {(row["cache"], row["length"]): float(row["score"]) for row in rows}
        self.assertEqual(scores["full", "1000"], 1)
        self.assertEqual(scores["snapkv 128", "1000"], 1)
        self.assertLess(scores["streaming-llm 32", "1000"], 1)
        run("evaluate.py", table, MODEL)  # goes on where it stopped: at the end

    def test_compress_torch_cache(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("needs torch")
        self.assertIn("cpu: kept 1024 of 4096 rows per head", run("compress_torch_cache.py"))

    def test_transformers_cache(self):
        if not importlib.util.find_spec("torch") or not importlib.util.find_spec("transformers"):
            self.skipTest("needs torch and transformers")
        full, ours = run("transformers_cache.py").splitlines()
        sizes = [float(line.split("read, ")[1].split()[0]) for line in (full, ours)]
        self.assertGreater(sizes[0], 5 * sizes[1])


if __name__ == "__main__":
    unittest.main()
