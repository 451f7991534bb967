# SPDX-License-Identifier: MIT
"""Tests tools/install_packages.sh with stand-ins for dpkg-query and apt-get. Run by ctest."""
import os
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "install_packages.sh"
TOOLS = ["cat", "env", "grep", "mktemp", "rm"]  # the system's tools that the script calls

DPKG_QUERY = """case " $MISSING " in *" $4 "*) exit 1 ;; esac; printf installed"""
# apt-get install fails as long as the lists are missing and works after an update.
APT_GET = """echo "apt-get $*" >> "$CALLS"
[ "$1" = update ] && { : > "$CALLS.lists"; exit "$UPDATE_STATUS"; }
[ -e "$CALLS.lists" ] || { echo "no such package" >&2; exit 100; }"""


class InstallPackages(unittest.TestCase):
    def run_script(self, missing="", lists=True, update_status=0, debian=True, root=True,
                   args=(), programs_there=(), system="debian"):
        """Runs the script; returns (exit status, stderr, calls of apt-get)."""
        with tempfile.TemporaryDirectory() as folder:
            bin_dir = Path(folder) / "bin"
            bin_dir.mkdir()
            for tool in TOOLS:
                (bin_dir / tool).symlink_to(next(
                    p for d in ("/usr/bin", "/bin") if (p := Path(d) / tool).exists()))
            programs = {"id": f"echo {0 if root else 1000}"}
            if debian:
                programs.update({"dpkg-query": DPKG_QUERY, "apt-get": APT_GET})
            programs.update({name: "true" for name in programs_there})
            for name, text in programs.items():
                program = bin_dir / name
                program.write_text("#!/bin/sh\n" + text + "\n")
                program.chmod(program.stat().st_mode | stat.S_IXUSR)
            calls = Path(folder) / "calls"
            if lists:
                Path(f"{calls}.lists").touch()
            release = Path(folder) / "os-release"
            release.write_text(f'NAME="A system"\nID={system}\n')
            env = {"PATH": str(bin_dir), "MISSING": missing, "CALLS": str(calls),
                   "UPDATE_STATUS": str(update_status), "TMPDIR": folder,
                   "OS_RELEASE": str(release)}
            done = subprocess.run(["/bin/sh", str(SCRIPT), *args], env=env, capture_output=True, text=True,
                                  check=False)
            return (done.returncode, done.stderr,
                    calls.read_text().splitlines() if calls.exists() else [])

    def test_nothing_missing_touches_nothing(self):
        self.assertEqual(self.run_script(lists=False), (0, "", []))

    def test_installs_what_is_missing_only(self):
        status, err, calls = self.run_script("libfmt-dev ninja-build")
        self.assertEqual(status, 0, err)
        self.assertEqual(len(calls), 1)
        self.assertTrue(calls[0].endswith(" ninja-build libfmt-dev"), calls)
        self.assertIn("-y", calls[0])

    def test_fetches_lists_when_needed(self):
        status, err, calls = self.run_script("libfmt-dev", lists=False)
        self.assertEqual(status, 0, err)
        self.assertEqual([c.split()[1] for c in calls], ["install", "update", "install"])

    def test_failure_is_reported(self):
        status, err, _ = self.run_script("libfmt-dev", lists=False, update_status=100)
        self.assertNotEqual(status, 0)
        self.assertIn("libfmt-dev", err)

    def test_neither_root_nor_sudo(self):
        status, err, calls = self.run_script("libfmt-dev", root=False)
        self.assertEqual((status, calls), (1, []))
        self.assertIn("please install libfmt-dev", err)

    def test_pages_need_npm_and_a_browser_only_for_tests(self):
        lacking = "nodejs npm chromium"
        self.assertEqual(self.run_script(lacking), (0, "", []))
        status, err, calls = self.run_script(lacking, args=["tests"])
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" nodejs npm chromium"), calls)
        there = self.run_script(lacking, args=["tests"], programs_there=["npm", "google-chrome"])
        self.assertEqual(there, (0, "", []))

    def test_npm_without_a_browser_for_the_addon(self):
        status, err, calls = self.run_script("nodejs npm chromium", args=["node"])
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" nodejs npm"), calls)

    def test_ubuntu_has_no_chromium_package(self):
        status, err, calls = self.run_script("npm chromium", args=["tests"], system="ubuntu")
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" npm"), calls)
        self.assertIn("skipped", err)

    def test_clang_and_its_openmp_only_where_asked_for(self):
        lacking = "clang libomp-dev"
        there = self.run_script(lacking, args=["tests"], programs_there=["npm", "chromium"])
        self.assertEqual(there, (0, "", []))
        status, err, calls = self.run_script(lacking, args=["tests", "clang"],
                                             programs_there=["npm", "chromium"])
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" clang libomp-dev"), calls)

    def test_programs_that_tests_ask_only_for_checks(self):
        lacking = "doxygen lintian"
        for args in ([], ["tests"]):
            there = self.run_script(lacking, args=args, programs_there=["npm", "chromium"])
            self.assertEqual(there, (0, "", []))
        status, err, calls = self.run_script(lacking, args=["checks"])
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" doxygen lintian"), calls)

    def test_pip_only_for_models(self):
        lacking = "python3-pip"
        self.assertEqual(self.run_script(lacking), (0, "", []))
        status, err, calls = self.run_script(lacking, args=["models"])
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" python3-pip"), calls)
        there = self.run_script(lacking, args=["models"], programs_there=["python3"])
        self.assertEqual(there, (0, "", []))

    def test_doxygen_only_for_docs(self):
        lacking = "doxygen python3-venv"
        self.assertEqual(self.run_script(lacking), (0, "", []))
        status, err, calls = self.run_script(lacking, args=["docs"])
        self.assertEqual(status, 0, err)
        self.assertTrue(calls[0].endswith(" doxygen python3-venv"), calls)

    def test_unknown_arguments_are_refused(self):
        status, err, calls = self.run_script(args=["everything"])
        self.assertEqual((status, calls), (2, []))
        self.assertIn("usage", err)

    def test_other_systems_get_the_names(self):
        status, err, _ = self.run_script(debian=False)
        self.assertEqual(status, 0)
        for name in ("oneDNN", "Highway", "SentencePiece", "GoogleTest", "Node.js", "Chromium", "pip"):
            self.assertIn(name, err)


if __name__ == "__main__":
    unittest.main()
