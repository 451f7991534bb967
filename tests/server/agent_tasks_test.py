#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent_tasks_test.py ROOT: the tasks of tools/agent_tasks.json can be done with the tools that there
are, and only by the calls and the answers that they ask for."""
import json
import sys

ROOT = sys.argv[1]
sys.path.insert(0, ROOT + "/tools")
import agent_history  # noqa: E402
import agent_tasks  # noqa: E402

with open(ROOT + "/tools/agent_tasks.json") as f:
    DATA = json.load(f)
OFFICE = agent_tasks.Office(DATA)


def conversation(calls, answer):
    """What an agent would have said that makes these calls and answers with this text."""
    messages = [{"role": "user", "content": ""}]
    for call in calls:
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        messages.append({"role": "assistant", "finish_reason": "tool_calls",
                         "tool_calls": [{"id": "1", "function": function}]})
        messages.append({"role": "tool", "content": OFFICE.call(call["name"], call["arguments"])})
    return messages + [{"role": "assistant", "finish_reason": "stop", "content": answer}]


def check(condition, *what):
    if not condition:
        sys.exit(f"failed: {what}")


kinds = [task["kind"] for task in DATA["tasks"]]
check(len(DATA["tools"]) == 5 and {kind: kinds.count(kind) for kind in kinds}
      == dict.fromkeys(agent_tasks.KINDS, 10), kinds)
for task in DATA["tasks"]:
    for call in task["calls"]:
        result = OFFICE.call(call["name"], call["arguments"])
        check(not result.startswith(("Error", "No note", "There are no")), task["id"], result)
    right = " and ".join(words[0] for words in task["answer"])

    def reason(calls, answer, task=task):
        return agent_tasks.why_not_done(DATA, task, conversation(calls, answer))

    check(reason(task["calls"], right) == "", task["id"], reason(task["calls"], right))
    if task["answer"]:
        check(reason(task["calls"], "I do not know.").startswith("the answer lacks"), task["id"])
    if task["calls"]:
        check(reason(task["calls"][1:], right).startswith("does not call"), task["id"])
        check(agent_tasks.why_not_done(DATA, task, conversation(task["calls"], right)[:-1])
              == "never answers", task["id"])
    else:
        check(reason([{"name": "calculate", "arguments": {"expression": "1"}}], right)
              == "calls a tool without need", task["id"])

check(OFFICE.call("calculate", {"expression": "(3 + 4) * 12 / 8"}) == "10.5")
for name, arguments in (("calculate", {"expression": "__import__('os')"}), ("calculate", {}),
                        ("read_file", {"path": "/etc/passwd"}), ("calculate", {"expression": "1/0"}),
                        ("other", {}), ("get_weather", {"city": "Rome", "day": "someday"})):
    check(OFFICE.call(name, arguments).startswith("Error"), name, arguments)


def words(text):
    return len(text.split())


earlier = agent_history.history(5000, words)
check(earlier == agent_history.history(5000, words), "the same seed gives the same history")
check(earlier != agent_history.history(5000, words, seed=2))
check(4000 < sum(words(message["content"]) for message in earlier) <= 5000)
check([message["role"] for message in earlier] == ["user", "assistant", "tool", "assistant"]
      * (len(earlier) // 4))
for asked, called, read, answered in zip(*[iter(earlier)] * 4):
    path = json.loads(called["tool_calls"][0]["function"]["arguments"])["path"]
    check(path in asked["content"] and read["tool_call_id"] == called["tool_calls"][0]["id"], path)
    level = asked["content"].split()[4]
    lines = [line for line in read["content"].split("\n") if line.split()[2] == level]
    check(answered["content"].endswith(lines[-1] if lines else "in it."), answered)
check(agent_history.history(0, words) == [])

first = agent_tasks.first_calls(DATA, conversation([{"name": "calculate", "arguments": {
    "expression": "2 * 3"}}], "6"))
check(first == [("calculate", "6")], first)
results = agent_tasks.Results(["full", "256", "512"], None)
for rows, calls in (("full", first), ("256", []), ("512", first)):
    results.add(rows, DATA["tasks"][0], [{"prompt": 9, "read": 4}, {"prompt": 7, "read": 5}], "", calls)
check("| 256 | 1 of 1 | 1 of 1 | 0 of 0 | 0 of 0 | 0 of 0 | 0 of 1 | 9 | 5 |" in results.table(), results.table())
check("| 512 | 1 of 1 | 1 of 1 | 0 of 0 | 0 of 0 | 0 of 0 | 1 of 1 | 9 | 5 |" in results.table())
results = agent_tasks.Results(["full", "256"], None, first_only=True)
for rows, calls in (("full", first), ("256", [])):
    results.add(rows, DATA["tasks"][0], [{}, {"prompt": 9, "read": 4}], "does not call", calls)
check("| rows | first calls as full | longest prompt | most read |" in results.table(), results.table())
check("| 256 | 0 of 1 | 9 | 4 |" in results.table(), results.table())
