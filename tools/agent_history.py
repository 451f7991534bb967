# SPDX-License-Identifier: MIT
"""agent_history.py: the earlier part of a long conversation for agent_tasks.py: questions about log files,
the calls that read them, their contents, and the answers. The same seed gives the same conversation."""
import json
import random

STATIONS = ("Porto", "Faro", "Esbjerg", "Gdansk", "Cork", "Aarhus", "Malmo", "Ghent", "Vigo", "Kiel")
MESSAGES = {
    "info": ("tide table for {station} sent in {n} ms", "{station} asked for {n} days",
             "backup of {station} took {n} s", "{n} boats are moored in {station}"),
    "warning": ("gauge of {station} is {n} minutes late", "{station} repeats value {n}"),
    "error": ("no answer from {station} after {n} tries", "value {n} of {station} is out of range"),
}
LINES = 40  # of a log file


def log_lines(drawn, day):
    """A log file: lines "2026-02-03 08:14 warning gauge of Cork is 12 minutes late"."""
    lines = []
    for i in range(LINES):
        minute = i * 24 * 60 // LINES + drawn.randrange(30)
        level = drawn.choices(list(MESSAGES), (8, 2, 1))[0]
        text = drawn.choice(MESSAGES[level]).format(station=drawn.choice(STATIONS),
                                                    n=drawn.randrange(2, 400))
        lines.append(f"{day} {minute // 60:02}:{minute % 60:02} {level} {text}")
    return lines


def exchange(drawn, i):
    """The i-th question about a log file, with the call, its result and the answer."""
    day = f"2026-{1 + i // 28:02}-{1 + i % 28:02}"
    path, lines = f"logs/{day}.log", log_lines(drawn, day)
    level = drawn.choice(("warning", "error"))
    found = [line for line in lines if f" {level} " in line]
    answer = f"The last {level} is: {found[-1]}" if found else f"There is no {level} in it."
    call = {"id": f"log{i}", "type": "function",
            "function": {"name": "read_file", "arguments": json.dumps({"path": path})}}
    return [{"role": "user", "content": f"What is the last {level} in {path}?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "\n".join(lines)},
            {"role": "assistant", "content": answer}]


def history(n_tokens, count_tokens, seed=1):
    """Messages of at most, and nearly, `n_tokens`, in whole exchanges. `count_tokens`: of a text."""
    drawn = random.Random(seed)
    messages, left = [], n_tokens
    for i in range(300):
        new = exchange(drawn, i)
        left -= sum(count_tokens(message["content"] + json.dumps(message.get("tool_calls", "")))
                    for message in new)
        if left < 0:
            break
        messages += new
    return messages
