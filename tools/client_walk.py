#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""client_walk.py: real clients and agent libraries against `snapkv serve`.

  tools/client_walk.py --snapkv build/release/bin/snapkv -m MODEL.gguf [--only openai,ollama]
    [--work build/clients] [--docs docs/clients.md]

Makes virtual environments and a folder of npm packages below --work, installs the clients there from
PyPI and npm (this needs a network), starts the server on a free port, and runs what tools/clients/
has for each of them. Prints a table of names, versions, what was run and what failed; --docs puts it
into docs/clients.md. Ends with 1 if anything failed.

The model needs a chat template. What is checked must not depend on how clever it is: calls and
structures that are checked are those that must be made.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Names of checks, and the packages that each needs; the version of the first is shown
CLIENTS = {  # python_clients.py, in one environment
    "openai": ["openai"],
    "anthropic": ["anthropic"],
    "ollama": ["ollama"],
    "langchain-openai": ["langchain-openai"],
    "langchain-anthropic": ["langchain-anthropic"],
    "langchain-ollama": ["langchain-ollama"],
    "pydantic-ai": ["pydantic-ai-slim", "openai"],
    "instructor": ["instructor"],
    "litellm": ["litellm"],
    "openai-agents": ["openai-agents"],
    "smolagents": ["smolagents", "openai"],
}
FRAMEWORKS = {  # frameworks.py, each in an environment of its own
    "lm-eval": ["lm-eval[api]"],
    "llama-index": ["llama-index-llms-openai-like"],
    "dspy": ["dspy", "litellm"],
    "haystack": ["haystack-ai"],
    "outlines": ["outlines", "openai"],
}
NPM = {
    "ollama (npm)": ["ollama"],
    "openai (npm)": ["openai"],
    "anthropic (npm)": ["@anthropic-ai/sdk"],
    "Vercel AI SDK (openai-compatible)": ["ai", "@ai-sdk/openai-compatible", "zod"],
    "Vercel AI SDK (openai)": ["ai", "@ai-sdk/openai", "zod"],
    "codex": ["@openai/codex"],
    "Claude Code": ["@anthropic-ai/claude-code"],
}
# Checks in which tool_choice asks for the call: by the check, by the library or by a forwarder
AI_ROUND = {"a tool and its result", "the same, streamed"}
FORCED = {
    "openai": {"tools"},
    "anthropic": {"tools"},
    "langchain-anthropic": {"structured output"},
    "pydantic-ai": {"an output type"},
    "instructor": {"response_model (TOOLS)"},
    "openai-agents": {"a tool (OpenAIChatCompletionsModel)", "a tool (OpenAIResponsesModel)"},
    "smolagents": {"a model's tool call"},
    "llama-index": {"a tool and its result", "structured output (tool)"},
    "dspy": {"Predict with a tool"},
    "haystack": {"a tool and its result"},
    "Vercel AI SDK (openai-compatible)": AI_ROUND,
    "Vercel AI SDK (openai)": {f"{api}: {check}" for api in ("responses", "chat") for check in AI_ROUND},
    "codex": {"a tool and its result"},
    "Claude Code": {"a tool and its result"},
}
BEGIN, END = "<!-- clients: made by tools/client_walk.py -->", "<!-- clients: end -->"


def run(command, **more):
    result = subprocess.run(command, text=True, capture_output=True, **more)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}:\n{result.stdout}{result.stderr}")
    return result.stdout


def install_python(folder, packages):
    """Makes an environment with these packages, by uv where there is one, and returns its Python and
    the versions of all in it."""
    python, uv = folder / "bin" / "python", shutil.which("uv")
    if not python.exists():
        venv.create(folder, with_pip=not uv)
    install = [uv, "pip", "install", "--python", python] if uv else \
        [python, "-m", "pip", "install", "--no-compile"]
    run([*install, "--quiet", "--upgrade", *sorted(packages)])
    listed = run([python, "-c", "import importlib.metadata as all, json\n"
                  "print(json.dumps([[each.name, each.version] for each in all.distributions()]))"])
    return python, {name.lower().replace("_", "-"): version for name, version in json.loads(listed)}


def install_all_python(work, wanted):
    """For each name: the command that runs its checks, and its version."""
    commands, versions = {}, {}

    def add(folder, script, clients, names):
        python, found = install_python(
            work / folder, {package for name in names for package in clients[name]})
        for name in names:
            commands[name] = [python, "-B", HERE / "clients" / script]
            versions[name] = found[clients[name][0].split("[")[0]]

    if together := [name for name in wanted if name in CLIENTS]:
        add("venv", "python_clients.py", CLIENTS, together)
    for name in wanted:
        if name in FRAMEWORKS:
            add(f"venv-{name}", "frameworks.py", FRAMEWORKS, [name])
    return commands, versions


def install_all_npm(work, wanted):
    """The same of npm's packages."""
    names = [name for name in wanted if name in NPM]
    if not names:
        return {}, {}
    folder = work / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
         *sorted({package for name in names for package in NPM[name]})], cwd=folder)
    (folder / "npm_clients.mjs").write_text((HERE / "clients" / "npm_clients.mjs").read_text())
    commands = {name: ["node", folder / "npm_clients.mjs"] for name in names}
    if "codex" in names:
        commands["codex"] = [sys.executable, "-B", HERE / "clients" / "codex_client.py",
                             folder / "node_modules" / ".bin" / "codex"]
    if "Claude Code" in names:
        # puts the program where it is started
        run(["node", "install.cjs"], cwd=folder / "node_modules" / "@anthropic-ai" / "claude-code")
        commands["Claude Code"] = [sys.executable, "-B", HERE / "clients" / "claude_client.py",
                                   folder / "node_modules" / ".bin" / "claude"]
    package = lambda name: folder / "node_modules" / NPM[name][0] / "package.json"
    return commands, {name: json.loads(package(name).read_text())["version"] for name in names}


class Server:
    """`snapkv serve` on a free port."""

    def __init__(self, snapkv, model, more):
        self.process = subprocess.Popen(
            [snapkv, "serve", "-m", model, "--port", "0", "--alias", "local", "--temp", "0",
             "--no-progress", *more],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        self.url, log = None, []
        for line in self.process.stderr:
            log.append(line)
            found = re.search(r"http://[0-9.]+:\d+", line)
            if found:
                self.url = found[0]
                break
        if not self.url:
            raise SystemExit("the server did not start:\n" + "".join(log))

    def __enter__(self):
        return self.url

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def walk(command, name, url, seconds):
    """What the client's checks printed: [(check, error or "")]."""
    begin = time.time()
    try:
        result = subprocess.run([*command, name, url], text=True, capture_output=True,
                                timeout=seconds)
        checks = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")]
        if result.returncode != 0:
            checks.append(["end", result.stderr.strip().splitlines()[-1:] or ["no message"]])
    except subprocess.TimeoutExpired:
        checks = [["end", f"not done after {seconds} seconds"]]
    print(f"{name}: {len(checks)} checks, {time.time() - begin:.1f} s", file=sys.stderr)
    for check, error in checks:
        if error:
            print(f"  {check}: {error}", file=sys.stderr)
    return checks


def table(rows):
    lines = ["| client | version | what was run | what failed |", "|---|---|---|---|"]
    for name, version, checks in rows:
        ran = ", ".join(check + ("\\*" if check in FORCED.get(name, ()) else "")
                        for check, _ in checks)
        failed = "; ".join(f"{check}: {error}" for check, error in checks if error) or "nothing"
        lines.append(f"| {name} | {version} | {ran} | {failed} |".replace("\n", " "))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--snapkv", default="build/release/bin/snapkv")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--only", default="", help="names of clients, with commas between them")
    parser.add_argument("--work", default="build/clients", type=Path)
    parser.add_argument("--docs", type=Path, help="the page that gets the table")
    parser.add_argument("--seconds", type=float, default=300, help="that one client may take")
    parser.add_argument("more", nargs="*", help="options for the server, after --")
    args = parser.parse_args()
    names = [*CLIENTS, *FRAMEWORKS, *NPM]
    wanted = [name.strip() for name in args.only.split(",")] if args.only else names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"--only: there is no client {unknown[0]!r}; there are {', '.join(names)}")
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    commands, versions = install_all_python(work, wanted)
    npm_commands, npm_versions = install_all_npm(work, wanted)
    commands |= npm_commands
    versions |= npm_versions
    with Server(args.snapkv, args.model, args.more) as url:
        rows = [(name, versions[name], walk(commands[name], name, url, args.seconds))
                for name in wanted]
    text = table(rows)
    print(text)
    if args.docs:
        page = args.docs.read_text()
        before, rest = page.split(BEGIN)
        args.docs.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")
    return int(any(error for _, _, checks in rows for _, error in checks))


if __name__ == "__main__":
    sys.exit(main())
