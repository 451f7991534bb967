# SPDX-License-Identifier: MIT
"""The Debian packages of this build: what is in which, what they depend on, and lintian's errors (where it
is installed). Arguments: the build folder, cpack."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1))
CPACK = sys.argv.pop(1)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        subprocess.run([CPACK, "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder.name,
                        "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"],  # faster
                       check=True, capture_output=True)
        cls.files, cls.control, cls.paths = {}, {}, {}
        for deb in Path(cls.folder.name).glob("*.deb"):
            name = deb.name.split("_")[0]
            cls.paths[name] = deb
            cls.files[name] = set(re.findall(r" \.(/\S*[^/\s])(?: ->.*)?$",
                                             output("dpkg-deb", "-c", deb), re.M))
            cls.control[name] = output("dpkg-deb", "-I", deb)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_there_are_three(self):
        self.assertEqual(set(self.files), {"snapkv", "libsnapkv-c0", "libsnapkv-dev"})

    def test_each_file_is_in_its_package(self):
        share = "/usr/share"
        self.assertLessEqual({
            "/usr/bin/snapkv", f"{share}/man/man1/snapkv.1.gz", f"{share}/snapkv/needle.gguf",
            f"{share}/bash-completion/completions/snapkv", f"{share}/zsh/vendor-completions/_snapkv",
            f"{share}/fish/vendor_completions.d/snapkv.fish", f"{share}/doc/snapkv/sbom.spdx.json",
        }, self.files["snapkv"])
        self.assertTrue(any(f.endswith("/libsnapkv_c.so.0") for f in self.files["libsnapkv-c0"]))
        self.assertFalse(any(f.endswith(".so") for f in self.files["libsnapkv-c0"]))
        development = self.files["libsnapkv-dev"]
        self.assertLessEqual({"/usr/include/snapkv/snapkv.h", "/usr/include/snapkv/engine.h"},
                             development)
        for ending in ("/libsnapkv.a", "/libsnapkv_c.so", "/cmake/snapkv/snapkvConfig.cmake"):
            self.assertTrue(any(f.endswith(ending) for f in development), ending)
        everything = [f for files in self.files.values() for f in files]
        self.assertEqual(len(everything), len(set(everything)), "a file is in two packages")

    def test_each_has_its_licence_and_its_changes(self):
        for name, files in self.files.items():
            for file in ("copyright", "changelog.gz"):
                self.assertIn(f"/usr/share/doc/{name}/{file}", files)

    def test_dependencies(self):
        def depends(name):
            return re.search(r"^ Depends: (.*)$", self.control[name], re.M)[1]
        self.assertRegex(depends("snapkv"), r"libdnnl[23]")
        self.assertRegex(depends("libsnapkv-c0"), r"libdnnl[23]")
        version = re.search(r"^ Version: (.*)$", self.control["snapkv"], re.M)[1]
        self.assertIn(f"libsnapkv-c0 (= {version})", depends("libsnapkv-dev"))
        for needed in ("libdnnl-dev", "libhwy-dev", "libfmt-dev"):
            self.assertIn(needed, depends("libsnapkv-dev"))

    def test_lintian_finds_no_errors(self):
        if not shutil.which("lintian"):
            self.skipTest("no lintian")
        done = subprocess.run(["lintian", "--fail-on", "error", "--allow-root", *self.paths.values()],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
