#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the wheel of `make wheel`: one file for every Python, small enough, and what its README says
works in a new environment.

  tools/check_wheel.py FOLDER [--python PYTHON ...] [--model MODEL.gguf]

Of README.md's first program the part that chats is left out where the model (models/needle.gguf) has
no chat template. pip may fetch numpy.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_MB = 20
CHECK = """
assert "48213" in document.ask("\\nQuestion: What is the secret number of Rome?\\nAnswer: The secret "
                               "number of Rome is", max_tokens=8, temperature=0)
print("snapkv", snapkv.__version__, "in Python", sys.version.split()[0])
"""


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


def check_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {f"snapkv/{p.name}" for p in (ROOT / "python" / "snapkv").glob("*.py")}
    missing = sources | {"snapkv/bin/snapkv", "snapkv/lib/libsnapkv_c.so", "snapkv/licenses/onednn.txt",
                         "snapkv/licenses/libxml2.txt", "snapkv/share/snapkv/needle.gguf"}
    missing -= names
    if missing:
        sys.exit(f"{wheel.name}: has no {', '.join(sorted(missing))}")


def readme_program(model, chats):
    text = (ROOT / "python" / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    parts = [p for p in program.split("\n\n") if chats or not p.startswith("# chats")]
    return "\n\n".join(parts).replace("model.gguf", str(model)) + "\nimport sys\n" + CHECK


def check_installed(python, wheel, model):
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("SNAPKV_") and k != "PYTHONPATH"}

    def run(*command, **given):
        done = subprocess.run([str(word) for word in command], cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, **given)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))[:200]}\nended with {done.returncode}\n{done.stdout}")
        return done.stdout

    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", "own")
        programs = Path(folder, "own", "bin")
        run(programs / "pip", "install", "-q", f"{wheel}[numpy]")
        facts = ROOT / "examples" / "facts.txt"
        Path(folder, "book.txt").write_text(facts.read_text())
        chats = run(programs / "python", "-c", "import snapkv, sys; "
                    "print(len(snapkv.Model(sys.argv[1]).info['chat_templates']))", model)
        print(run(programs / "python", "-c", readme_program(model, int(chats))).splitlines()[-1])
        needle = ROOT / "models" / "needle.gguf"
        demo = run(programs / "snapkv", "demo", "--length", "1000")
        if "snapkv" not in demo:
            sys.exit(f"snapkv demo printed\n{demo}")
        answer = run(programs / "snapkv", "run", needle, facts, "--no-chat", "-n", "8", "--temp", "0",
                     "Question: What is the secret number of Rome?\n"
                     "Answer: The secret number of Rome is")
        if "48213" not in answer:
            sys.exit(f"snapkv run printed\n{answer}")
        page = Path(folder, "page.html")
        run(programs / "snapkv", "inspect", "-m", needle, "-f", facts, "--kv-budget", "64", "-o", page)
        if "<html" not in page.read_text()[:1000]:
            sys.exit(f"snapkv inspect wrote\n{page.read_text()[:1000]}")
        html = Path(folder, "facts.html")
        html.write_text(f"<html><body><p>{facts.read_text()}</p></body></html>")
        generated = run(programs / "snapkv", "generate", "-m", needle, "-f", html, "--no-chat", "-n", "8", "--temp",
                        "0", "-p", "Question: What is the secret number of Rome?\n"
                        "Answer: The secret number of Rome is")
        if "48213" not in generated:
            sys.exit(f"snapkv generate printed\n{generated}")
        run(programs / "python", "-m", "snapkv", "--version")
        for command in ("serve", "chat"):
            run(programs / "snapkv", command, "--help")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "needle.gguf")
    given = parser.parse_args()
    wheel = the_wheel(given.folder.resolve())
    check_files(wheel)
    for python in given.python:
        check_installed(python, wheel, given.model.resolve())


if __name__ == "__main__":
    main()
