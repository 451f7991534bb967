# SPDX-License-Identifier: MIT
"""The version has one place, project() in CMakeLists.txt, and whatever else names it agrees. Arguments: the
source folder, the version, the program (optional)."""
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))
VERSION = sys.argv.pop(1)
PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


class Versions(unittest.TestCase):
    def test_python_takes_it_from_cmake(self):
        project = read("pyproject.toml")
        self.assertRegex(project, r'dynamic = \["version"\]')
        self.assertNotRegex(project, r"(?m)^version *=")
        pattern = re.search(r"^regex = '(.*)'$", project, re.M)[1]
        self.assertEqual(re.search(pattern, read("CMakeLists.txt"))["value"], VERSION)

    def test_node_takes_it_from_cmake(self):
        self.assertNotIn("version", json.loads(read("node/package.json")))
        self.assertNotIn("version", json.loads(read("node/package-lock.json")))

    def test_pages_agree(self):
        self.assertEqual(json.loads(read("web/package.json"))["version"], VERSION)
        self.assertEqual(json.loads(read("web/package-lock.json"))["version"], VERSION)

    def test_the_program_says_it(self):
        if PROGRAM is None:
            self.skipTest("built without the program")
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
        self.assertIn(VERSION, said.stdout)

    def test_the_changes_of_a_version_are_named(self):
        headings = re.findall(r"^## (.*)$", read("CHANGELOG.md"), re.M)
        self.assertTrue(headings[0] == "Unreleased" or headings[0].startswith(VERSION), headings[0])


if __name__ == "__main__":
    unittest.main()
