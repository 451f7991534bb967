#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/set_metadata.py: numbers are added and replaced, everything else stays byte for byte."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "set_metadata.py"
MODEL = ROOT / "models" / "needle.gguf"
sys.path.insert(0, str(TOOL.parent))
import set_metadata  # noqa: E402


def parts(data):
    """({key: bytes of the entry}, description of the tensors, their data)"""
    reader = set_metadata.Reader(data)
    reader.skip(8)
    n_tensors, n_entries = reader.number("Q"), reader.number("Q")
    entries = {key: raw for key, _, raw in set_metadata.read_entries(reader, n_entries)}
    at = reader.at
    set_metadata.skip_tensors(reader, n_tensors)
    start = -(-reader.at // 32) * 32
    return entries, data[at:reader.at], data[start:]


class SetMetadata(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "model.gguf"
        shutil.copyfile(MODEL, self.path)

    def run_tool(self, *settings):
        return subprocess.run([sys.executable, "-B", TOOL, self.path, *settings], capture_output=True, text=True)

    def test_adds_and_replaces(self):
        before = parts(MODEL.read_bytes())
        result = self.run_tool("snapkv.kernel_size=11", "a.new.key=4294967295")
        self.assertEqual(result.returncode, 0, result.stderr)
        after = parts(self.path.read_bytes())
        self.assertEqual(after[1:], before[1:])
        self.assertEqual(after[0][b"snapkv.kernel_size"][-4:], (11).to_bytes(4, "little"))
        self.assertEqual(after[0][b"a.new.key"][-4:], b"\xff" * 4)
        for key, raw in before[0].items():
            if key != b"snapkv.kernel_size":
                self.assertEqual(after[0][key], raw)
        self.assertEqual(len(after[0]), len(before[0]) + 1)
        self.assertEqual([p.name for p in self.path.parent.iterdir()], [self.path.name])

    def test_the_shipped_model_has_its_numbers(self):
        entries = parts(MODEL.read_bytes())[0]
        self.assertEqual(entries[b"snapkv.window_size"][-4:], (16).to_bytes(4, "little"))
        self.assertEqual(entries[b"snapkv.kernel_size"][-4:], (15).to_bytes(4, "little"))

    def test_refuses(self):
        whole = self.path.read_bytes()
        for setting in ["key", "key=", "=1", "key=-1", "key=1.5", "key=4294967296"]:
            self.assertNotEqual(self.run_tool(setting).returncode, 0, setting)
        for damaged in [b"", b"GGUF", whole[:5000], b"nope" + whole[4:]]:
            self.path.write_bytes(damaged)
            result = self.run_tool("key=1")
            self.assertNotEqual(result.returncode, 0)
            self.assertNotIn("Traceback", result.stderr)
            self.assertEqual(self.path.read_bytes(), damaged)


if __name__ == "__main__":
    unittest.main()
