# SPDX-License-Identifier: MIT
"""dependencies_test.py CMAKE: what cmake/SnapkvFind.cmake says of libraries that are missing or too old."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CMAKE = sys.argv.pop(1)
MODULES = Path(__file__).resolve().parents[2] / "cmake"


class Dependencies(unittest.TestCase):
    def configure(self, lines, files=()):
        """Configures a project of these lines beside these files; returns (exit status, output)."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in dict(files).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            (root / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(test LANGUAGES NONE)\n"
                f"list(APPEND CMAKE_MODULE_PATH {MODULES})\nlist(APPEND CMAKE_PREFIX_PATH {root})\n"
                "include(SnapkvFind)\n" + "\n".join(lines) + "\nsnapkv_stop_if_missing()\n"
                'message("list: ${SNAPKV_FOUND}")\n')
            done = subprocess.run([CMAKE, "-S", root, "-B", root / "build"], capture_output=True, text=True,
                                  check=False)
            return done.returncode, " ".join((done.stdout + done.stderr).split())

    @staticmethod
    def package(name, version):
        """A library that refuses to be found as another major version than its own."""
        folder = f"lib/cmake/{name}"
        return {f"{folder}/{name}-config.cmake": "",
                f"{folder}/{name}-config-version.cmake":
                    f"set(PACKAGE_VERSION {version})\n"
                    "if(PACKAGE_FIND_VERSION AND NOT PACKAGE_FIND_VERSION_MAJOR EQUAL "
                    f"{version.split('.')[0]})\n  set(PACKAGE_VERSION_COMPATIBLE FALSE)\nelse()\n"
                    "  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"}

    FIND = ["snapkv_find(library leftpad 2.6 BELOW 4 REQUIRED CONFIG PACKAGE libleftpad-dev)"]

    def test_a_later_major_version_will_do(self):
        for version in ("2.6", "2.10.1", "3.7.2"):
            status, out = self.configure(self.FIND, self.package("leftpad", version))
            self.assertEqual(status, 0, out)
            self.assertIn(f"list: library leftpad {version}", out)

    def test_says_what_was_found_and_what_to_install(self):
        status, out = self.configure(self.FIND, self.package("leftpad", "2.5.9"))
        self.assertNotEqual(status, 0)
        self.assertRegex(out, r"leftpad 2\.6 or later, before 4: found 2\.5\.9 in \S+/lib/cmake/leftpad; "
                              r"package libleftpad-dev")
        self.assertIn("found 4.0", self.configure(self.FIND, self.package("leftpad", "4.0"))[1])

    def test_names_all_that_are_missing(self):
        status, out = self.configure(self.FIND + [
            "snapkv_find_files(tests rightpad 1.2 RIGHTPAD HEADER rightpad.h PACKAGE librightpad-dev)"])
        self.assertNotEqual(status, 0)
        self.assertIn("leftpad 2.6 or later, before 4: not found; package libleftpad-dev", out)
        self.assertIn("rightpad 1.2 or later: not found; package librightpad-dev", out)

    def test_versions_in_headers(self):
        line = ["snapkv_find_files(tests rightpad 1.2 RIGHTPAD HEADER rightpad.h VERSION_MACRO RP_ "
                "LIBRARIES rightpad PACKAGE librightpad-dev)"]
        header = "#define RP_MAJOR 1\n#define RP_MINOR  {}\n#define RP_PATCH 7 // the last one\n"
        files = {"include/rightpad.h": header.format(2), "lib/librightpad.so": ""}
        status, out = self.configure(line, files)
        if "rightpad 1.2 or later: not found" in out:  # without a language, CMake may not know the endings
            files["lib/librightpad.a"] = ""
            status, out = self.configure(['set(CMAKE_FIND_LIBRARY_SUFFIXES .so .a)',
                                          'set(CMAKE_FIND_LIBRARY_PREFIXES lib)', *line], files)
        self.assertEqual(status, 0, out)
        self.assertIn("list: tests rightpad 1.2.7", out)
        status, out = self.configure(line, {"include/rightpad.h": header.format(2)})
        self.assertIn("rightpad 1.2 or later: not found", out)
        no_library = [line[0].replace("LIBRARIES rightpad ", "")]
        status, out = self.configure(no_library, {"include/rightpad.h": header.format(1)})
        self.assertNotEqual(status, 0)
        self.assertIn("rightpad 1.2 or later: found 1.1.7; package librightpad-dev", out)


if __name__ == "__main__":
    unittest.main()
