# SPDX-License-Identifier: MIT
"""Tests tools/check_units.py on a project of three files. Run by ctest."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "check_units.py"
COMPILER = os.environ.get("CXX", "c++")
GOOD = "#include <string>\nstd::string name() { return {}; }\n"
# like a file that a unity build compiles after another one that includes <string>
BAD = "#include <cstdint>\nint64_t size(const std::string& s) { return s.size(); }\n"
CACHE = "SNAPKV_UNITY:BOOL=OFF\nCMAKE_DISABLE_PRECOMPILE_HEADERS:BOOL=ON\n"


class CheckUnits(unittest.TestCase):
    def check(self, files, cache=CACHE):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder, "build")
            build.mkdir()
            commands = []
            for name, text in files.items():
                file = Path(folder, name)
                file.write_text(text)
                commands.append({"directory": folder, "file": str(file),
                                 "command": f"{COMPILER} -std=c++20 -O2 -o {name}.o -c {file}"})
            (build / "compile_commands.json").write_text(json.dumps(commands))
            (build / "CMakeCache.txt").write_text(cache)
            done = subprocess.run([sys.executable, "-B", SCRIPT, build], capture_output=True, text=True,
                                  check=False)
            left = sorted(p.name for p in Path(folder).iterdir())
            self.assertEqual(left, sorted(["build", *files]), "it left files behind")
            return done.returncode, done.stdout + done.stderr

    def test_files_that_compile(self):
        status, out = self.check({"a.cpp": GOOD, "b.cpp": GOOD})
        self.assertEqual(status, 0, out)
        self.assertIn("2 files, each by itself: 2 compile, 0 do not", out)

    def test_names_the_file_that_lacks_an_include(self):
        status, out = self.check({"a.cpp": GOOD, "bad.cpp": BAD, "c.cpp": GOOD})
        self.assertEqual(status, 1, out)
        self.assertRegex(out, r"bad\.cpp does not compile by itself")
        self.assertIn("3 files, each by itself: 2 compile, 1 do not", out)

    def test_a_precompiled_header_gives_a_file_nothing_that_it_does_not_include(self):
        # so many that <string> is worth precompiling for those that include it
        files = {f"good{i}.cpp": GOOD + "#include <filesystem>\n#include <memory>\n" for i in range(8)}
        status, out = self.check({**files, "bad.cpp": BAD})
        self.assertEqual(status, 1, out)
        self.assertIn("8 compile, 1 do not", out)

    def test_headers_are_chosen_by_what_they_save(self):
        spec = importlib.util.spec_from_file_location("check_units", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)

        class Unit:
            def __init__(self, *large):
                self.large = frozenset(large)

        many = [Unit("gtest/gtest.h", "string")] * 20
        units = many + [Unit("string"), Unit("CLI/CLI.hpp")]
        chosen = module.choose_headers(units)
        self.assertEqual(chosen, [many[0].large])
        self.assertEqual(module.best_header(many[0], chosen), many[0].large)
        self.assertEqual(module.best_header(units[-1], chosen), frozenset())

    def test_refuses_a_build_that_hides_missing_includes(self):
        for cache in ("SNAPKV_UNITY:BOOL=ON\nCMAKE_DISABLE_PRECOMPILE_HEADERS:BOOL=ON\n",
                      "SNAPKV_UNITY:BOOL=OFF\n"):
            status, out = self.check({"a.cpp": GOOD}, cache)
            self.assertNotEqual(status, 0)
            self.assertIn("cmake --preset dev", out)


if __name__ == "__main__":
    unittest.main()
