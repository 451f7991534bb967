#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What packaging/ and the dashboard say is what the server has. Arguments: the source folder and the
program.

The dashboard asks for metrics that the server writes, variables in the Dockerfile and the unit are
options of `snapkv serve`, the Dockerfile installs every library that the program links (on the
Debian that the container has, where dpkg knows), and systemd reads the unit, where it is installed.
"""
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1))
PROGRAM = Path(sys.argv.pop(1))


def read(path):
    return (ROOT / path).read_text()


class Dashboard(unittest.TestCase):
    def test_asks_for_metrics_that_exist(self):
        written = set(re.findall(r'"(snapkv_\w+)"', read("app/server/metrics.cpp")))
        dashboard = json.loads(read("examples/grafana-dashboard.json"))
        asked = set()
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                asked |= set(re.findall(r"snapkv_\w+", target["expr"]))
        self.assertGreater(len(asked), 10)
        for name in asked:
            self.assertIn(re.sub(r"_bucket$", "", name), written)


class Options(unittest.TestCase):
    def test_variables_are_options(self):
        text = subprocess.run([PROGRAM, "serve", "--help-all"], capture_output=True, text=True,
                              check=True).stdout
        for path in ("packaging/Dockerfile", "packaging/snapkv.service"):
            for name in set(re.findall(r"SNAPKV_([A-Z_]+)=", read(path))):
                if name.startswith("BUILD_"):
                    continue
                self.assertIn("--" + name.lower().replace("_", "-"), text, path)


class Container(unittest.TestCase):
    def test_runs_as_a_user_whose_health_is_asked_for(self):
        build, final = re.split(r"^FROM ", read("packaging/Dockerfile"), flags=re.M)[1:]
        self.assertIn(" AS build", build)
        self.assertIn("COPY --from=build", final)
        self.assertRegex(final, r"(?m)^USER (?!root|0)\w+$")
        path = re.search(r"HEALTHCHECK[^\n]*\\\n *CMD .*127\.0\.0\.1:8080(/\w+)", final)[1]
        self.assertIn(f'"{path}"', "".join(p.read_text() for p in (ROOT / "app/server").rglob("*.cpp")))

    def test_takes_no_builds_and_no_models_from_the_folder(self):
        left_out = set(read(".dockerignore").splitlines())
        self.assertLessEqual({"build", "models/real", "texts", ".git", "web/node_modules"}, left_out)

    def test_has_every_library_that_the_program_links(self):
        release = re.findall(r"(?m)^FROM debian:(\d+)", read("packaging/Dockerfile"))[-1]
        system = Path("/etc/os-release")
        lines = system.read_text().splitlines() if system.exists() else []
        if "ID=debian" not in lines or f'VERSION_ID="{release}"' not in lines:
            self.skipTest(f"the container has Debian {release}, this is another system")
        installed = set(re.findall(r"\blib[\w.+-]+", read("packaging/Dockerfile").split("FROM")[2]))
        needed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True,
                                check=True).stdout
        if "[libomp" in needed:
            self.skipTest("built with Clang: the container's program has GCC's OpenMP runtime")
        if "[libasan" in needed:
            self.skipTest("built with a sanitizer, which is for tests")
        for library in re.findall(r"NEEDED.*\[(.*)\]", needed):
            found = subprocess.run(["dpkg-query", "-S", "*/" + library], capture_output=True,
                                   text=True).stdout
            packages = {line.split(":")[0] for line in found.splitlines()}
            base = {"libc6", "libstdc++6", "libgcc-s1"}  # in every image
            self.assertTrue(packages & (installed | base), f"{library}: of {packages}")


class Unit(unittest.TestCase):
    def test_systemd_reads_it(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd")
        result = subprocess.run(["systemd-analyze", "verify", "--man=no",
                                 str(ROOT / "packaging/snapkv.service")],
                                capture_output=True, text=True)
        lines = [line for line in result.stderr.splitlines()
                 if "snapkv.service" in line and "/usr/local/bin/snapkv" not in line]
        self.assertEqual(lines, [])


if __name__ == "__main__":
    unittest.main()
