#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A coding agent's conversation: what a server reads of each turn, and how long its first token takes.

  agent_trace.py [--turns 20] [--system-tokens 20000] NAME=COMMAND [NAME=COMMAND ...]

Each COMMAND starts a server with /v1/chat/completions, as snapkv serve or llama-server; {port} in it
becomes a free port of 127.0.0.1:

  bench/agent_trace.py 'snapkv=build/release/bin/snapkv serve -m model.gguf -c 32768 --port {port}' \\
    'llama-server=llama-server -m model.gguf -c 32768 --port {port} --jinja'

The system message has --system-tokens tokens (about; this project's documentation) and five tools. Each
turn sends the whole history, as agents do: what a tool returned or a user asked, a few hundred tokens.
Printed per server: tokens that were new in all turns, tokens that were read for them, the last turn's
time to first token, that of the same request when everything is read, and the resident memory.
"""
import argparse
import http.client
import json
import pathlib
import time

from server_load import Server, tree_rss

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = [("read_file", "Read a file", {"path": "string"}),
         ("write_file", "Write a file", {"path": "string", "text": "string"}),
         ("list_folder", "List a folder", {"path": "string"}),
         ("search", "Search the files for a pattern", {"pattern": "string"}),
         ("run", "Run a command", {"command": "string"})]
LETTERS_PER_TOKEN = 3.6  # of such documentation, with the vocabularies of small models


def documentation(n_letters):
    text = "\n\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    while len(text) < n_letters:
        text += text
    return text[:n_letters]


def sources(n):
    """n pieces of source code, as a tool would return them."""
    files = sorted((ROOT / "src").rglob("*.cpp"))
    return [f"{path.relative_to(ROOT)}:\n{path.read_text()[:900]}" for path in files[:n]]


def tool(name, help_text, parameters):
    return {"type": "function", "function": {
        "name": name, "description": help_text,
        "parameters": {"type": "object", "required": list(parameters),
                       "properties": {p: {"type": kind} for p, kind in parameters.items()}}}}


def ask(port, body):
    """The answer's text, its usage and timings, and the seconds to the first token."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"status {response.status}: {response.read()[:2000].decode(errors='replace')}")
    text, first, usage, timings = "", None, {}, {}
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        usage = chunk.get("usage") or usage
        timings = chunk.get("timings") or timings
        delta = chunk["choices"][0]["delta"] if chunk.get("choices") else {}
        text += delta.get("content") or ""
        if first is None and (delta.get("content") or delta.get("tool_calls")):
            first = time.monotonic() - began
    return text, usage, timings, first if first is not None else time.monotonic() - began


def trace(server, options):
    body = {"tools": [tool(*each) for each in TOOLS], "tool_choice": "none", "temperature": 0,
            "max_tokens": options.answer_tokens, "stream": True,
            "stream_options": {"include_usage": True}}
    messages = [{"role": "system",
                 "content": documentation(int(options.system_tokens * LETTERS_PER_TOKEN))}]
    new = read = before = 0
    for i, text in enumerate(sources(options.turns)):
        messages.append({"role": "user", "content": f"Step {i + 1}. What does this do?\n\n{text}"})
        asked = {**body, "messages": list(messages), "cache_prompt": True}
        answer, usage, timings, first = ask(server.port, asked)
        messages.append({"role": "assistant", "content": answer or "-"})
        new += usage["prompt_tokens"] - before
        read += timings["prompt_n"]
        before = usage["prompt_tokens"] + usage["completion_tokens"]
        print(f"  {server.name} turn {i + 1}: {usage['prompt_tokens']} tokens, {timings['prompt_n']} read, "
              f"first token after {first:.2f} s", flush=True)
    rss = tree_rss(server.process.pid)
    cold = ask(server.port, {**asked, "cache_prompt": False})[3]
    return new, read, first, cold, rss


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--system-tokens", type=int, default=20000)
    parser.add_argument("--answer-tokens", type=int, default=32)
    parser.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    rows = []
    for entry in options.servers:
        name, command = entry.split("=", 1)
        with open("/dev/null", "w", encoding="utf-8") as log:
            server = Server(name, command, log, 3600)
            try:
                rows.append((name, *trace(server, options)))
            finally:
                server.stop()
    print("\n| server | new tokens | read | read / new | first token, last turn | everything read | share | MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name, new, read, first, cold, rss in rows:
        print(f"| {name} | {new} | {read} | {read / new:.3f} | {first:.2f} s | {cold:.2f} s | "
              f"{first / cold:.1%} | {rss / 2**20:.0f} |")


if __name__ == "__main__":
    main()
