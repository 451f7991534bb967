#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the wheel of `make wheel`: one file for every Python, small enough, with all libraries that not
every system has and their licences; and that the command, and what the package's README says, work in a
new environment.

  tools/check_wheel.py FOLDER [--python PYTHON ...] [--model MODEL.gguf]

Of README.md's first program the part that chats is left out where the model (models/needle.gguf) has
no chat template. pip may fetch numpy.
"""

import argparse
import contextlib
import functools
import http.server
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request
import zipfile
from pathlib import Path

from pack_wheel import OF_EVERY_SYSTEM, OWN

ROOT = Path(__file__).resolve().parent.parent
MOST_MB = 20
CHECK = """
assert "48213" in document.ask("\\nQuestion: What is the secret number of Rome?\\nAnswer: The secret "
                               "number of Rome is", max_tokens=8, temperature=0)
print("snapkv", snapkv.__version__, "in Python", sys.version.split()[0])
"""
QUESTION = "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is"
# of the program and the libraries, without those of a wheel's own libraries
LIBRARIES = ("libsnapkv_c.so", "libsnapkv_server.so")
FILES = {"snapkv/bin/snapkv", "snapkv/share/snapkv/needle.gguf", *(f"snapkv/lib/{n}" for n in LIBRARIES)}


def package_files():
    """The package's own sources, as a wheel has them."""
    python = ROOT / "python"
    return {str(p.relative_to(python)) for p in (python / "snapkv").rglob("*.py")}


def the_wheel(folder):
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{folder}: {len(wheels)} wheels; expected one")
    wheel = wheels[0]
    if not re.search(r"-py3-none-manylinux_2_\d+_\w+\.whl$", wheel.name):
        sys.exit(f"{wheel.name}: expected tags py3-none-manylinux..., for every Python and glibc from one on")
    size = wheel.stat().st_size / 1e6
    if size >= MOST_MB:
        sys.exit(f"{wheel.name}: {size:.1f} MB; expected less than {MOST_MB}")
    print(f"{wheel.name}: {size:.1f} MB")
    return wheel


def needed(elf):
    """The names of the libraries that an ELF file of 64 bits asks for (DT_NEEDED)."""
    table, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", elf, table + i * size) for i in range(count)]

    def place(address):
        return next(s[2] + address - s[3] for s in segments if s[0] == 1 and s[3] <= address < s[3] + s[5])

    dynamic = next(s for s in segments if s[0] == 2)
    entries = [struct.unpack_from("<QQ", elf, at) for at in range(dynamic[2], dynamic[2] + dynamic[5], 16)]
    entries = entries[:entries.index(next(e for e in entries if e[0] == 0))]
    strings = place(next(value for tag, value in entries if tag == 5))
    return [elf[strings + value:elf.index(b"\0", strings + value)].decode()
            for tag, value in entries if tag == 1]


def check_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        missing = package_files() | FILES | {f"snapkv/licenses/{name}.txt" for name in (*OWN, "README")}
        missing -= names
        if missing:
            sys.exit(f"{wheel.name}: has no {', '.join(sorted(missing))}")
        bundled = {Path(name).name: name for name in names if re.match(r"snapkv\.libs/.", name)}
        licences = dict(line.split(": ") for line in archive.read("snapkv/licenses/README.txt").decode().splitlines()
                        if ".so" in line)
        for name in bundled:
            library = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", name)
            licence = f"snapkv/licenses/{licences.get(library)}"
            if licence not in names:
                sys.exit(f"{wheel.name}: has {name} but no licence of {library}")
        for name in [*bundled.values(), "snapkv/bin/snapkv", *(f"snapkv/lib/{n}" for n in LIBRARIES)]:
            for library in needed(archive.read(name)):
                if library not in (*bundled, *LIBRARIES) and not OF_EVERY_SYSTEM.match(library):
                    sys.exit(f"{wheel.name}: {name} needs {library}, which is not in the wheel")


def readme_program(model, chats):
    text = (ROOT / "python" / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    parts = [p for p in program.split("\n\n") if chats or not p.startswith("# chats")]
    return "\n\n".join(parts).replace("model.gguf", str(model)) + "\nimport sys\n" + CHECK


class Files(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, as a server has them that snapkv pull asks."""

    def log_message(self, *arguments):
        pass

    def copyfile(self, source, outputfile):
        with contextlib.suppress(ConnectionError):  # the first request asks for the size and reads no more
            super().copyfile(source, outputfile)


class Installed:
    """A wheel in a new environment."""

    def __init__(self, folder, python, wheel):
        self.folder = Path(folder)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("SNAPKV_") and k not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        self.run(python, "-m", "venv", "own")
        self.programs = self.folder / "own" / "bin"
        self.run(self.programs / "pip", "install", "-q", f"{wheel}[numpy]")

    def run(self, *command):
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))[:200]}\nended with {done.returncode}\n{done.stdout}")
        return done.stdout

    def snapkv(self, *words, prints=""):
        printed = self.run(self.programs / "snapkv", *words)
        if prints not in printed:
            sys.exit(f"snapkv {' '.join(map(str, words))[:200]}: expected '{prints}' in\n{printed}")
        return printed

    def check_package(self, model):
        chats = self.run(self.programs / "python", "-c", "import snapkv, sys; "
                         "print(len(snapkv.Model(sys.argv[1]).info['chat_templates']))", model)
        print(self.run(self.programs / "python", "-c", readme_program(model, int(chats))).splitlines()[-1])
        self.run(self.programs / "python", "-m", "snapkv", "--version")

    def check_documents(self, needle, text):
        """The kinds that libraries read: HTML and .docx."""
        (self.folder / "facts.html").write_text(f"<html><body><p>{text}</p></body></html>")
        words = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        with zipfile.ZipFile(self.folder / "facts.docx", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("[Content_Types].xml", "<Types/>")
            archive.writestr("word/document.xml", f'<w:document xmlns:w="{words}"><w:body><w:p><w:r><w:t>{text}'
                             "</w:t></w:r></w:p></w:body></w:document>")
        for name in ("facts.html", "facts.docx"):
            self.snapkv("run", needle, name, "--no-chat", "-n", "8", "--temp", "0", QUESTION, prints="48213")

    def check_pull(self, needle):
        handler = functools.partial(Files, directory=needle.parent)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            path = self.snapkv("pull", f"http://127.0.0.1:{server.server_port}/{needle.name}").splitlines()[-1]
            server.shutdown()
        if Path(path).read_bytes() != needle.read_bytes():
            sys.exit(f"snapkv pull: {path} is not what the server has")

    def check_server(self, needle):
        log = self.folder / "server.log"
        with log.open("w") as written, subprocess.Popen(
                [self.programs / "snapkv", "serve", "-m", needle, "--port", "0"], cwd=self.folder,
                env=self.environment, stdout=written, stderr=subprocess.STDOUT) as server:
            try:
                address = None
                while address is None and server.poll() is None:
                    address = re.search(r"ready: (http://[\d.]+:\d+)", log.read_text())
                if address is None:
                    sys.exit(f"snapkv serve ended:\n{log.read_text()}")
                with urllib.request.urlopen(address[1] + "/v1/models") as answer:
                    if b"needle" not in answer.read():
                        sys.exit("snapkv serve: /v1/models does not name the model")
                with urllib.request.urlopen(address[1] + "/") as answer:
                    if b"<!doctype html" not in answer.read(1000).lower():
                        sys.exit("snapkv serve: / is not its page")
            finally:
                server.terminate()

    def check(self, model):
        needle, facts = ROOT / "models" / "needle.gguf", ROOT / "examples" / "facts.txt"
        (self.folder / "book.txt").write_text(facts.read_text())
        print(self.snapkv("--version").splitlines()[0])
        self.check_package(model)
        self.snapkv("demo", "--length", "1000", prints="snapkv")
        print(self.snapkv("run", needle, "book.txt", "--no-chat", "-n", "8", "--temp", "0", QUESTION, prints="48213"))
        self.check_documents(needle, facts.read_text())
        self.snapkv("inspect", "-m", needle, "-f", facts, "--kv-budget", "64", "-o", "page.html")
        if "<html" not in (self.folder / "page.html").read_text()[:1000]:
            sys.exit("snapkv inspect: page.html is not a page")
        self.check_pull(needle)
        self.check_server(needle)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "needle.gguf")
    given = parser.parse_args()
    wheel = the_wheel(given.folder.resolve())
    check_files(wheel)
    for python in given.python:
        with tempfile.TemporaryDirectory() as folder:
            Installed(folder, python, wheel).check(given.model.resolve())


if __name__ == "__main__":
    main()
