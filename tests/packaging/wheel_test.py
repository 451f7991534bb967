# SPDX-License-Identifier: MIT
"""The Python wheel: what this build puts into one, and that tools/check_wheel.py sees what is wrong with one.
A wheel that `make wheel` has made is checked too. Arguments: the source folder, the build folder, cmake."""
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(sys.argv.pop(1))
BUILD = Path(sys.argv.pop(1))
CMAKE = sys.argv.pop(1)
sys.path.insert(0, str(ROOT / "tools"))
import check_wheel  # noqa: E402  (a tool, not a package)
import pack_wheel  # noqa: E402

NAME = "snapkv-0.1.0-py3-none-manylinux_2_36_x86_64.whl"


class ThisBuild(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = Path(cls.temporary.name)
        subprocess.run([CMAKE, "--install", BUILD, "--component", "python", "--prefix", cls.root],
                       check=True, capture_output=True)
        for source in (ROOT / "python" / "snapkv").rglob("*.py"):
            copy = cls.root / source.relative_to(ROOT / "python")
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(source, copy)
        cls.binaries = [cls.root / "snapkv" / "bin" / "snapkv",
                        *(cls.root / "snapkv" / "lib" / n for n in check_wheel.LIBRARIES)]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_in_it(self, *words):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SNAPKV_")}
        return subprocess.run([sys.executable, "-B", *map(str, words)], cwd=self.root, capture_output=True, text=True,
                              check=False, env={**environment, "PYTHONPATH": str(self.root), "SNAPKV_THREADS": "1"})

    def test_its_files(self):
        files = {str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()}
        self.assertLessEqual(check_wheel.FILES | check_wheel.package_files(), files)
        others = {f for f in files if ".so." not in f}  # a wheel has one name
        self.assertEqual(others, check_wheel.FILES | check_wheel.package_files())

    def test_the_command_runs_with_its_own_model(self):
        done = self.run_in_it("-m", "snapkv", "demo", "--length", "300")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("snapkv", done.stdout)

    def test_the_package_loads_its_library(self):
        model = self.root / "snapkv" / "share" / "snapkv" / "needle.gguf"
        done = self.run_in_it("-c", "import snapkv, sys; print(snapkv.__file__); print(snapkv.Model(sys.argv[1]).info)",
                              model)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(self.root), done.stdout)

    def test_each_of_its_libraries_has_a_licence(self):
        if not shutil.which("dpkg-query"):
            self.skipTest("no dpkg-query: wheels are made on Debian")
        libraries = pack_wheel.needed_libraries(self.binaries, dict(os.environ))
        self.assertTrue(any(name.startswith("libdnnl.so") for name in libraries), libraries)
        files, of_library = pack_wheel.licences(libraries)
        self.assertEqual(set(of_library), set(libraries))
        for name in (*of_library.values(), *pack_wheel.COMPILED_IN):
            self.assertGreater(files[name].stat().st_size, 100, name)

    def test_what_they_need_is_what_the_loader_says(self):
        for binary in self.binaries:
            names = check_wheel.needed(binary.read_bytes())
            self.assertIn("libc.so.6", names)
            said = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
            for name in names:
                self.assertIn(name, said)


class MadeWheels(unittest.TestCase):
    """Wheels with a fault each."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def check(self, without=(), more=None, name=NAME, readme="libfmt.so.9: libfmt9.txt\n", most_mb=1000):
        """What the check says of a wheel that is right but for this; None: nothing. It may be large, since
        the program that stands for all binaries is of any size."""
        elf = Path(sys.executable).resolve().read_bytes()  # needs no more than every system has, and libexpat
        needs = [n for n in check_wheel.needed(elf) if not pack_wheel.OF_EVERY_SYSTEM.match(n)]
        contents = {n: b"" for n in check_wheel.package_files() | check_wheel.FILES}
        contents.update({f"snapkv/licenses/{n}.txt": b"words" for n in (*pack_wheel.OWN, "libfmt9", "python3")})
        contents.update({"snapkv/bin/snapkv": elf, **{f"snapkv/lib/{n}": elf for n in check_wheel.LIBRARIES}})
        lines = "".join(f"{n}: python3.txt\n" for n in needs)
        contents["snapkv/licenses/README.txt"] = ("Licences\n" + lines + readme).encode()
        for library in (*needs, "libfmt-01234567.so.9"):
            contents[f"snapkv.libs/{library}"] = elf
        contents.update(more or {})
        with zipfile.ZipFile(self.folder / name, "w") as archive:
            for n, content in contents.items():
                if n not in without:
                    archive.writestr(n, content)
        try:
            with contextlib.redirect_stdout(io.StringIO()), mock.patch.object(check_wheel, "MOST_MB", most_mb):
                check_wheel.check_files(check_wheel.the_wheel(self.folder))
        except SystemExit as end:
            return str(end)
        finally:
            (self.folder / name).unlink()
        return None

    def test_a_right_one_passes(self):
        self.assertIsNone(self.check())

    def test_a_missing_file_is_named(self):
        for name in ("snapkv/bin/snapkv", "snapkv/lib/libsnapkv_c.so", "snapkv/share/snapkv/needle.gguf",
                     "snapkv/__main__.py", "snapkv/licenses/curl.txt"):
            self.assertIn(f"has no {name}", self.check(without=[name]) or "")

    def test_a_library_without_a_licence_is_named(self):
        self.assertIn("libfmt-01234567.so.9 but no licence of libfmt.so.9", self.check(readme="") or "")
        self.assertIn("no licence of libfmt.so.9", self.check(without=["snapkv/licenses/libfmt9.txt"]) or "")

    def test_a_library_that_is_not_in_it_is_named(self):
        program = (BUILD / "bin" / "snapkv").read_bytes()
        said = self.check(more={"snapkv/bin/snapkv": program}) or ""
        self.assertRegex(said, r"snapkv/bin/snapkv needs lib\S+\.so\S*, which is not in the wheel")

    def test_a_wheel_of_one_system_or_python_is_refused(self):
        for tag in ("py3-none-linux_x86_64", "cp311-cp311-manylinux_2_36_x86_64"):
            self.assertIn("expected tags", self.check(name=f"snapkv-0.1.0-{tag}.whl") or "")

    def test_a_large_one_is_refused(self):
        large = {"snapkv/share/large": os.urandom(int(check_wheel.MOST_MB * 1e6))}
        self.assertIn(f"less than {check_wheel.MOST_MB}", self.check(more=large, most_mb=check_wheel.MOST_MB) or "")

    def test_the_one_of_make_wheel(self):
        wheels = list((ROOT / "build" / "wheel").glob("*.whl"))
        if not wheels:
            self.skipTest("no wheel: make wheel makes one")
        check_wheel.check_files(check_wheel.the_wheel(ROOT / "build" / "wheel"))


if __name__ == "__main__":
    unittest.main()
