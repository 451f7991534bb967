#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent_bugfix.py: coding agents on `snapkv serve`, each of which has to fix a one-line bug.

  tools/clients/agent_bugfix.py --snapkv build/release/bin/snapkv -m MODEL.gguf
    [--only opencode,aider-whole] [--work build/agents] [--log FOLDER] [-- options for the server]

Installs the agents from PyPI and npm below --work (this needs a network), starts a server for each,
and gives it a repository of three files in which one test fails, with the request to mend it. No
call is forced and no request is changed. An agent has fixed the bug if the tests, in their first
state, pass afterwards. Prints a table: the agent, whether the bug is fixed, which files it changed,
how many answers the server gave and how many of them were calls, the longest prompt, and the
seconds. --log keeps what each agent printed, the repository as it left it, and the server's messages.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from client_walk import install_python, run  # noqa: E402

NPM = {"opencode": "opencode-ai", "codex": "@openai/codex", "claude": "@anthropic-ai/claude-code"}
PYPI = {"aider": ["aider-chat"], "smolagents": ["smolagents", "openai"]}
AGENTS = ["opencode", "codex", "claude", "aider-whole", "aider-diff", "smolagents-tools",
          "smolagents-code"]

FILES = {
    "cart.py": '''"""A shopping cart."""
from prices import price_with_tax


class Cart:
    def __init__(self):
        self.items = []  # (name, price in cents, quantity)

    def add(self, name, price, quantity=1):
        if quantity < 1:
            raise ValueError("quantity must be at least 1")
        self.items.append((name, price, quantity))

    def count(self):
        return sum(quantity for _, _, quantity in self.items)

    def subtotal(self):
        return sum(price + quantity for _, price, quantity in self.items)

    def total(self, tax_percent):
        return price_with_tax(self.subtotal(), tax_percent)
''',
    "prices.py": '''"""Prices in cents."""


def price_with_tax(cents, percent):
    """The price with tax, rounded to whole cents."""
    return round(cents * (100 + percent) / 100)


def format_price(cents):
    return f"{cents // 100}.{cents % 100:02} EUR"
''',
    "test_cart.py": '''import unittest

from cart import Cart
from prices import format_price, price_with_tax


class CartTest(unittest.TestCase):
    def test_count(self):
        cart = Cart()
        cart.add("apple", 30, 4)
        cart.add("pear", 45)
        self.assertEqual(cart.count(), 5)

    def test_subtotal(self):
        cart = Cart()
        cart.add("apple", 30, 4)
        cart.add("pear", 45)
        self.assertEqual(cart.subtotal(), 165)

    def test_total(self):
        cart = Cart()
        cart.add("book", 1000, 2)
        self.assertEqual(cart.total(7), 2140)

    def test_prices(self):
        self.assertEqual(price_with_tax(1000, 19), 1190)
        self.assertEqual(format_price(1205), "12.05 EUR")


if __name__ == "__main__":
    unittest.main()
''',
}
TASK = ("test_subtotal in test_cart.py fails: the subtotal of 4 apples at 30 cents and a pear at 45 cents "
        "should be 165 cents, but Cart.subtotal() in cart.py returns 80. Fix the bug in cart.py.")


class Server:
    """`snapkv serve` on a free port, its messages in a file."""

    def __init__(self, snapkv, model, more, log):
        self.log = open(log, "w+")
        self.process = subprocess.Popen(
            [snapkv, "serve", "-m", model, "--port", "0", "--alias", "local", *more],
            stderr=self.log, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        self.url = None
        while not self.url:
            if self.process.poll() is not None:
                raise SystemExit("the server did not start:\n" + Path(log).read_text())
            time.sleep(0.2)
            found = re.search(r"http://[0-9.]+:\d+", Path(log).read_text())
            self.url = found and found[0]
        while not self.ready():
            time.sleep(0.2)

    def ready(self):
        """Whether the model is loaded."""
        try:
            with urllib.request.urlopen(self.url + "/health") as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False

    def __enter__(self):
        return self.url

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


def opencode(program, url, folder, home, context):
    settings = {
        "provider": {"snapkv": {
            "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": url + "/v1", "apiKey": "any"},
            "models": {"local": {"name": "local", "tool_call": True,
                                 "limit": {"context": context, "output": 2048}}}}},
        "model": "snapkv/local", "small_model": "snapkv/local", "autoupdate": False, "share": "disabled",
        "permission": {"edit": "allow", "bash": "allow", "webfetch": "deny"}}
    (home / "opencode.json").write_text(json.dumps(settings))
    return [program, "run", "--model", "snapkv/local", TASK], {
        "OPENCODE_CONFIG": str(home / "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}


def codex(program, url, folder, home, context):
    provider = f'{{name="snapkv",base_url="{url}/v1",wire_api="responses"}}'
    return [program, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
            "-m", "local", "-c", "model_provider=snapkv", "-c", f"model_providers.snapkv={provider}",
            "-c", f"model_context_window={context}", TASK], {"CODEX_HOME": str(home)}


def claude(program, url, folder, home, context):
    return [program, "--print", "--verbose", "--output-format", "stream-json",
            "--permission-mode", "acceptEdits", "--allowedTools",
            "Read,Edit,Write,Glob,Grep,Bash(python3:*)", "--", TASK], {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "any",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "2048"}


def aider(edit_format):
    def command(program, url, folder, home, context):
        return [program, "--model", "openai/local", "--openai-api-base", url + "/v1",
                "--openai-api-key", "any", "--edit-format", edit_format, "--yes-always",
                "--no-show-model-warnings", "--no-check-update", "--analytics-disable",
                "--no-auto-commits", "--no-pretty", "--no-gitignore", "--map-tokens", "0",
                "--message", TASK, *FILES], {}
    return command


def smolagents(kind):
    def command(program, url, folder, home, context):
        script = Path(__file__).resolve().parent / "smolagents_bugfix.py"
        return [program, "-B", script, kind, url, TASK], {}
    return command


COMMANDS = {"opencode": opencode, "codex": codex, "claude": claude, "aider-whole": aider("whole"),
            "aider-diff": aider("diff"), "smolagents-tools": smolagents("tools"),
            "smolagents-code": smolagents("code")}


def install(work, wanted):
    """The program of each agent, and its version."""
    programs, versions = {}, {}
    npm = [name for name in wanted if name in NPM]
    if npm:
        folder = work / "npm"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
             *(NPM[name] for name in npm)], cwd=folder)
        if "claude" in npm:  # puts the program where it is started
            run(["node", "install.cjs"], cwd=folder / "node_modules" / NPM["claude"])
        for name in npm:
            programs[name] = folder / "node_modules" / ".bin" / name
            package = folder / "node_modules" / NPM[name] / "package.json"
            versions[name] = json.loads(package.read_text())["version"]
        if "opencode" in npm:  # its launcher looks for the program in other places than npm's
            programs["opencode"] = next(folder.glob("node_modules/opencode-linux-*/bin/opencode"))
    for name in wanted:
        package = name.split("-")[0]
        if package in PYPI:
            python, found = install_python(work / package, PYPI[package])
            programs[name] = python.parent / "aider" if package == "aider" else python
            versions[name] = found[PYPI[package][0]]
    return programs, versions


def requests_in(log):
    """What the server's messages say of its answers: their number, that of calls among them, and the
    tokens of the longest prompt."""
    ends, prompts = [], [0]
    for line in Path(log).read_text().splitlines():
        if found := re.search(r" POST /v1/.*: tokens: (\d+) read, (\d+) reused.*; (\w+)$", line):
            ends.append(found[3])
            prompts.append(int(found[1]) + int(found[2]))
    return {"answers": len(ends), "calls": ends.count("tool_calls"), "prompt": max(prompts)}


def tests_pass(folder):
    """Whether the tests as they were pass in the agent's folder."""
    for file in ("cart.py", "prices.py"):
        if not (folder / file).is_file():
            return False
    (folder / "test_cart.py").write_text(FILES["test_cart.py"])
    return subprocess.run([sys.executable, "-B", "-m", "unittest", "-q"], cwd=folder, capture_output=True,
                          timeout=60).returncode == 0


def fix(name, program, url, context, seconds, log):
    """Runs an agent, and returns what it did."""
    with tempfile.TemporaryDirectory() as place:
        folder, home = Path(place) / "shop", Path(place) / "home"
        folder.mkdir()
        home.mkdir()
        for file, text in FILES.items():
            (folder / file).write_text(text)
        for words in (["init", "-q"], ["config", "user.name", "agent"],
                      ["config", "user.email", "agent@example.com"], ["add", "."],
                      ["commit", "-qm", "Begin"]):
            run(["git", *words], cwd=folder)
        command, environment = COMMANDS[name](program, url, folder, home, context)
        begin = time.time()
        with open(log / f"{name}.txt", "w") as output:
            try:
                subprocess.run(list(map(str, command)), cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT, timeout=seconds,
                               env={**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"),
                                    "XDG_DATA_HOME": str(home / "data"), **environment})
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
        taken = time.time() - begin
        changed = [file for file in FILES if not (folder / file).is_file()
                   or (folder / file).read_text() != FILES[file]]
        shutil.copytree(folder, log / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
        return {"agent": name, "fixed": tests_pass(folder), "changed": changed, "ended": ended,
                "seconds": round(taken)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snapkv", default="build/release/bin/snapkv")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--only", default="", help="names of agents, with commas between them")
    parser.add_argument("--work", default="build/agents", type=Path)
    parser.add_argument("--log", type=Path, help="folder; by default, below --work")
    parser.add_argument("--seconds", type=float, default=600, help="that one agent may take")
    parser.add_argument("more", nargs="*", help="options for the server, after --")
    args = parser.parse_args()
    wanted = [name.strip() for name in args.only.split(",")] if args.only else AGENTS
    unknown = [name for name in wanted if name not in AGENTS]
    if unknown:
        parser.error(f"--only: there is no agent {unknown[0]!r}; there are {', '.join(AGENTS)}")
    work = args.work.resolve()
    log = (args.log or work / "log").resolve()
    log.mkdir(parents=True, exist_ok=True)
    programs, versions = install(work, wanted)
    results = []
    for name in wanted:  # a server of its own for each, whose messages are this agent's alone
        with Server(args.snapkv, args.model, args.more, log / f"{name}.server.txt") as url:
            with urllib.request.urlopen(url + "/props") as answer:
                context = json.load(answer)["default_generation_settings"]["n_ctx"]
            results.append(fix(name, programs[name], url, context, args.seconds, log))
        results[-1].update(requests_in(log / f"{name}.server.txt"))
        print(json.dumps(results[-1]), file=sys.stderr)
    print("| agent | version | fixed | changed | answers | calls | longest prompt | seconds |\n"
          "|---|---|---|---|---|---|---|---|")
    for each in results:
        cells = [each["agent"], versions[each["agent"]], "yes" if each["fixed"] else "no",
                 ", ".join(each["changed"]) or "-", each["answers"], each["calls"], each["prompt"],
                 f"{each['seconds']}{'' if each['ended'] else ' (stopped)'}"]
        print(f"| {' | '.join(map(str, cells))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
