# SPDX-License-Identifier: MIT
"""claude_client.py PROGRAM claude-code URL: turns of `claude --print`, which is PROGRAM: an answer, the
conversation continued, and a call of one of its tools with the call's result and an answer.

Claude Code's own system message and tools are 20000 tokens, more than small models can hold: it gets
a short message and one tool here. The models that this runs with call no tool by themselves, so a
forwarder adds a `tool_choice` to the request that has to be one.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import forwarder
from checks import check, need

TOOL = "Read"


def turn(program, base, home, *more):
    """The result of a turn and the events of its stream."""
    folder = home / "folder"
    folder.mkdir(exist_ok=True)
    result = subprocess.run(
        [program, "--print", *more, "--output-format", "stream-json", "--verbose",
         "--include-partial-messages", "--tools", TOOL, "--system-prompt",
         "You are an agent. Answer in one short sentence."],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={**os.environ, "HOME": str(home), "ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "any",
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "512"})
    events = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    need(events and events[-1]["type"] == "result", result.stdout + result.stderr)
    need(result.returncode == 0 and not events[-1]["is_error"], events[-1])
    return events[-1], events


def claude(url, program):
    forced = False

    def added(body):
        answered = any(block["type"] == "tool_result" for message in body.get("messages", [])
                       if isinstance(message["content"], list) for block in message["content"])
        if not forced or answered or not body.get("tools"):
            return {"stop_sequences": [".", "\n\n"]}  # small models may never end an answer
        return {"tool_choice": {"type": "tool", "name": TOOL}}

    base = forwarder.start(url, added)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)

        def answer():
            result, events = turn(program, base, home, "Say hello.")
            need(result["usage"]["output_tokens"] > 0, result)
            need(any(event.get("event", {}).get("type") == "content_block_delta" for event in events))
            answer.tokens = sum(result["usage"][part] for part in (
                "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))

        def continued():
            result, _ = turn(program, base, home, "--continue", "Say it again.")
            need(result["usage"]["cache_read_input_tokens"] >= 0.9 * answer.tokens, result["usage"])

        def tool():
            nonlocal forced
            forced = True
            _, events = turn(program, base, home, "Read a file.")
            blocks = [block["type"] for event in events if event["type"] in ("assistant", "user")
                      for block in event["message"]["content"] if isinstance(block, dict)]
            need("tool_use" in blocks and "tool_result" in blocks, blocks)

        check("an answer, streamed", answer)
        check("the conversation continued, its beginning from the cache", continued)
        check("a tool and its result", tool)


if __name__ == "__main__":
    claude(url=sys.argv[3], program=sys.argv[1])
