# SPDX-License-Identifier: MIT
"""codex_client.py PROGRAM codex URL: one whole turn of `codex exec`, which is PROGRAM: a call of one
of its tools, the call's result, and an answer.

The models that this runs with call no tool by themselves. A forwarder between the two adds a
`tool_choice`, for one call, to requests without a result; it changes no answer.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import forwarder
from checks import MODEL, check, need

TOOL = "get_goal"  # needs no arguments, and does nothing to the machine


def turn(program, base, home):
    instructions = home / "instructions.md"  # Codex's own are more than small models can hold
    instructions.write_text("You are an agent. Answer in one short sentence.\n")
    provider = f'{{name="snapkv",base_url="{base}/v1",wire_api="responses"}}'
    folder = home / "folder"
    folder.mkdir()
    result = subprocess.run(
        [program, "exec", "--json", "--skip-git-repo-check", "-s", "read-only", "-m", MODEL,
         "-c", "model_provider=snapkv", "-c", f"model_providers.snapkv={provider}",
         "-c", f"model_instructions_file={instructions}", "--disable", "multi_agent",
         "Say hello."],
        cwd=folder, env={**os.environ, "CODEX_HOME": str(home)}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True)
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    failed = [event["error"]["message"] for event in events if event["type"] == "turn.failed"]
    need(result.returncode == 0 and not failed, failed or result.stderr)
    return events


def codex(url, program):
    seen = []  # for each request: the types of its input's items

    def added(body):
        seen.append([item["type"] for item in body["input"]])
        if "function_call_output" in seen[-1]:
            return {}
        return {"tool_choice": {"type": "function", "name": TOOL}, "parallel_tool_calls": False}

    base = forwarder.start(url, added)
    with tempfile.TemporaryDirectory() as home:
        events = []
        check("exec to the end of the turn",
              lambda: events.extend(turn(program, base, Path(home))))
    check("a tool and its result", lambda: need(
        "function_call" in seen[-1] and "function_call_output" in seen[-1], seen))
    check("an answer", lambda: need(any(
        event["type"] == "item.completed" and event["item"]["type"] == "agent_message"
        for event in events) and events[-1]["type"] == "turn.completed"))


if __name__ == "__main__":
    codex(url=sys.argv[3], program=sys.argv[1])
