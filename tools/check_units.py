#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/check_units.py BUILD: compiles each file of a configured build by itself, syntax and types only.

The presets compile the files of a folder together, and tests with precompiled headers: both hide a
file that does not include what it uses. BUILD is a folder that CMake configured without either (preset
`dev`); nothing needs to be built in it. `make units` calls this.

Most of such a check would be the same large headers (GoogleTest, JSON, CLI11) read again for every
file. They are precompiled here, but only for files that include them anyway, themselves or through a
header of the project. So a missing include is found, unless one of these headers stands for it.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Headers that take the compiler long, and about how many seconds each adds to a file that has those
# before it. Only exact names count: who includes <nlohmann/json_fwd.hpp> must not get all of JSON.
LARGE = {
    "algorithm": 0.1, "functional": 0.15, "map": 0.05, "memory": 0.3, "string": 0.15, "vector": 0.05,
    "filesystem": 0.4, "fstream": 0.2, "sstream": 0.1, "random": 0.3, "regex": 0.4, "thread": 0.2,
    "fmt/core.h": 0.1, "fmt/format.h": 0.3, "nlohmann/json.hpp": 1.2, "httplib.h": 1.2,
    "CLI/CLI.hpp": 1.5, "gtest/gtest.h": 0.8,
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


class Includes:
    """The large headers that files include, themselves or through headers of the project."""

    def __init__(self):
        self.known = {}

    def of(self, file, folders):
        key = (file, tuple(folders))
        if key not in self.known:
            self.known[key] = set()  # ends cycles
            found = set()
            for quoted, angled in INCLUDE.findall(file.read_text(errors="replace")):
                name = quoted or angled
                if angled in LARGE:
                    found.add(angled)
                for folder in [file.parent] * bool(quoted) + folders:
                    if (folder / name).is_file():
                        found |= self.of(folder / name, folders)
                        break
            self.known[key] = found
        return self.known[key]


def syntax_command(entry):
    """The command of compile_commands.json without what it writes, which nothing here depends on."""
    words = entry.get("arguments") or shlex.split(entry["command"])
    if Path(words[0]).name in ("ccache", "sccache"):
        words = words[1:]
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        elif word not in ("-c", "-MD", "-MMD") and not re.fullmatch(r"-O.?|-g\d?|-fPI[CE]", word):
            kept.append(word)
    kept.remove(entry["file"])
    return kept + ["-fsyntax-only"]


def project_folders(command, directory, source):
    """The include folders that belong to the project."""
    folders = [Path(directory, word[2:]) for word in command if word.startswith("-I")]
    return [folder for folder in folders if folder.is_relative_to(source)]


class Unit:
    def __init__(self, entry, source, includes):
        self.file = Path(entry["directory"], entry["file"])
        self.directory = entry["directory"]
        self.command = syntax_command(entry)
        self.large = frozenset(
            includes.of(self.file, project_folders(self.command, self.directory, source)))

    def name(self, source):
        return str(self.file.relative_to(source) if self.file.is_relative_to(source) else self.file)

    def header_command(self):
        """What must agree between a precompiled header and a file that uses it."""
        ours = r"-[IW].*|-DSNAPKV.*|-fsyntax-only|-x"
        return tuple(word for before, word in zip(["", *self.command], self.command)
                     if before != "-x" and not re.fullmatch(ours, word))


def seconds(large):
    return sum(LARGE[name] for name in large)


def choose_headers(units, most=16):
    """The sets of large headers worth precompiling for files of one header_command(): greedily the one
    that saves the most, until none saves more than it takes to make."""
    candidates = set(unit.large for unit in units)
    chosen = []

    def saved(candidate):
        return sum(max(0, seconds(candidate) - seconds(best_header(unit, chosen)))
                   for unit in units if candidate <= unit.large)

    while candidates and len(chosen) < most:
        best = max(sorted(candidates, key=sorted), key=lambda c: saved(c) - 2 * seconds(c))
        if saved(best) < 2 * seconds(best) + 1:
            break
        candidates.remove(best)
        chosen.append(best)
    return chosen


def best_header(unit, chosen):
    """The largest of the chosen sets that has nothing which the file does not include."""
    return max((c for c in chosen if c <= unit.large), key=seconds, default=frozenset())


def run(command, directory):
    return subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")


def precompile(command, directory, large, folder):
    """Precompiles the headers `large` and returns the options with which a file uses them."""
    folder.mkdir()
    header = folder / "large.h"
    header.write_text("".join(f"#include <{name}>\n" for name in LARGE if name in large))
    is_clang = "clang" in run([command[0], "--version"], directory).stdout
    output = folder / ("large.pch" if is_clang else "large.h.gch")
    made = run([*command, "-x", "c++-header", str(header), "-o", str(output)], directory)
    if made.returncode != 0:
        raise RuntimeError(f"cannot precompile {', '.join(large)}:\n{made.stdout}")
    return ["-include-pch", str(output)] if is_clang else ["-include", str(header)]


def read_units(build, source, pattern):
    commands = build / "compile_commands.json"
    if not commands.is_file():
        sys.exit(f"{commands} is not there: configure the folder first, cmake --preset dev")
    cache = (build / "CMakeCache.txt").read_text() if (build / "CMakeCache.txt").is_file() else ""
    if "SNAPKV_UNITY:BOOL=ON" in cache or "CMAKE_DISABLE_PRECOMPILE_HEADERS:BOOL=ON" not in (
            cache.replace(":UNINITIALIZED=", ":BOOL=")):
        sys.exit(f"{build} compiles files together or with precompiled headers: "
                 "configure a folder without, cmake --preset dev")
    includes, units, seen = Includes(), [], set()
    for entry in json.loads(commands.read_text()):
        file = Path(entry["directory"], entry["file"])
        # what the build generates need not be there yet; a test of Node.js compiles a file twice
        if file in seen or file.is_relative_to(build) or not re.search(pattern, str(file)):
            continue
        seen.add(file)
        units.append(Unit(entry, source, includes))
    return units


def check(units, source, jobs):
    """Compiles all; prints the messages of each file that fails, and returns how many do."""
    failed = 0
    groups = {}
    for unit in units:
        groups.setdefault(unit.header_command(), []).append(unit)
    with tempfile.TemporaryDirectory() as temporary, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        headers = {}  # by command and set
        for command, group in groups.items():
            chosen = choose_headers(group)
            for large in chosen:
                headers[command, large] = pool.submit(precompile, command, group[0].directory, large,
                                                      Path(temporary, str(len(headers))))

        def compile_unit(unit):
            command = unit.header_command()
            chosen = [large for c, large in headers if c == command]
            header = headers.get((command, best_header(unit, chosen)))
            words = header.result() if header else []
            return run([*unit.command, *words, str(unit.file)], unit.directory)

        for unit, made in zip(units, pool.map(compile_unit, units)):
            print(made.stdout, end="")
            if made.returncode != 0:
                failed += 1
                print(f"{unit.name(source)} does not compile by itself", flush=True)
    return failed


def part(text):
    """K/N of --part."""
    match = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with K from 1 to N")
    return int(match[1]), int(match[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path, help="a configured build folder, as of preset dev")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)),
                        help="files compiled at once")
    parser.add_argument("--files", default="", metavar="REGEX", help="only files whose path matches")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="K/N",
                        help="only every N-th of these files, from the K-th on")
    arguments = parser.parse_args()
    source = Path(__file__).resolve().parent.parent
    start = time.monotonic()
    k, n = arguments.part
    units = sorted(read_units(arguments.build.resolve(), source, arguments.files),
                   key=lambda unit: unit.file)[k - 1::n]
    if not units:
        sys.exit(f"{arguments.build}: no file to compile")
    failed = check(units, source, arguments.jobs)
    print(f"{len(units)} files, each by itself: {len(units) - failed} compile, {failed} do not "
          f"({time.monotonic() - start:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
