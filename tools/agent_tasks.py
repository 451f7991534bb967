#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent_tasks.py PROGRAM MODEL: how many of the 40 small tasks in agent_tasks.json an agent with this
model gets done, with the full cache and with fewer rows. The model may call five tools, which are
computed here from the data of agent_tasks.json; no call is forced. A task is done when every call
that it needs was made (one with the same result as the expected one) and the last answer has every
expected text; a task that needs no tool is done without a call.

    tools/agent_tasks.py build/release/bin/snapkv model.gguf --rows full,1024,512,256

Prints a table, and with --records FILE writes every conversation as a line of JSON. With --history 14000
each task follows a conversation of so many tokens, in which log files were read. What comes before the
tasks is read once: the server keeps its rows, from which each task's own window chooses. "First calls as
full": tasks for which the first answer calls the same tools, with the same results, as with the full
cache. --first-only asks for these answers alone, which is quicker. "Most read": the most tokens that an
answer's prompt had and that were not there already.
"""
import argparse
import ast
import concurrent.futures
import http.client
import json
import operator
import os
import re
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent_history import history  # noqa: E402
from agent_load import Server  # noqa: E402

KINDS = {"single": "one call", "two": "two, the second with the first's result",
         "parallel": "several at once", "none": "none needed"}
MOST_TURNS = 6
MOST_TOKENS = 256
CONTEXT = 8192  # without a history
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv, ast.USub: operator.neg}


def value_of(node):
    """The value of a parsed sum; raises KeyError or TypeError for anything else."""
    if isinstance(node, ast.Expression):
        return value_of(node.body)
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](value_of(node.operand))
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    raise TypeError(ast.dump(node))


class Office:
    """The tools. Each returns a text; one that begins with "Error" means that nothing was found."""

    def __init__(self, data):
        self.data = data

    def call(self, name, arguments):
        try:
            return getattr(self, "tool_" + name)(**arguments)
        except (AttributeError, TypeError, KeyError, SyntaxError, ValueError,
                ZeroDivisionError) as error:
            return f"Error: {name}: {error or 'it can not be computed'}"

    def tool_read_file(self, path):
        lines = self.data["files"].get(path.strip().removeprefix("./").lstrip("/"))
        return "\n".join(lines) if lines else f"Error: there is no file '{path}'"

    def tool_calculate(self, expression):
        value = value_of(ast.parse(expression.replace(",", "").strip(), mode="eval"))
        return f"{value:.6f}".rstrip("0").rstrip(".")

    def tool_get_weather(self, city, day):
        cities = {name.lower(): report for name, report in self.data["weather"].items()}
        report = cities.get(city.split(",")[0].strip().lower())
        return report[day] if report else f"Error: no station in '{city}'"

    def tool_list_events(self, date):
        events = [event for event in self.data["events"] if event["date"] == date.strip()]
        return json.dumps(events) if events else f"There are no events on {date}."

    def tool_search_notes(self, words):
        wanted = [word.rstrip("s") for word in re.findall(r"\w+", words.lower())]
        found = [note for note in self.data["notes"]
                 if all(word in (note["title"] + " " + note["text"]).lower() for word in wanted)]
        return json.dumps(found) if found and wanted else f"No note has '{words}'."


def post(port, body, path="/v1/chat/completions"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=7200)
    connection.request("POST", path, json.dumps(body))
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    if response.status != 200:
        sys.exit(f"{response.status}: {answer}")
    return answer


def ask(port, data, messages, kv, max_tokens):
    return post(port, {"messages": messages, "tools": data["tools"], "temperature": 0,
                       "max_tokens": max_tokens, "kv": kv})


def first_messages(data, earlier, question):
    return [{"role": "system", "content": "\n".join(data["system"])}, *earlier,
            {"role": "user", "content": question}]


def read_beginning(port, data, earlier):
    """Lets the server read what all tasks begin with, so that it is there when several begin at a
    time. Returns the number of its tokens."""
    answer = ask(port, data, first_messages(data, earlier, "Hello!"), kv_of("full"), 1)
    return answer["usage"]["prompt_tokens"]


def converse(port, data, earlier, task, kv, most_turns):
    """The messages from the task's question to the last answer, after those of `earlier`."""
    office = Office(data)
    messages = first_messages(data, earlier, task["question"])
    for _ in range(most_turns):
        answer = ask(port, data, messages, kv, MOST_TOKENS)
        message = answer["choices"][0]["message"]
        message["finish_reason"] = answer["choices"][0]["finish_reason"]
        message["rows"] = answer["kv"]["tokens_kept"]
        message["prompt"] = answer["usage"]["prompt_tokens"]
        message["read"] = message["prompt"] - answer["kv"]["reused_tokens"]
        messages.append(message)
        if message["finish_reason"] != "tool_calls":
            break
        for call in message["tool_calls"]:
            function = call["function"]
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": office.call(
                function["name"], json.loads(function["arguments"]))})
    return messages[1 + len(earlier):]


def first_calls(data, messages):
    """The calls of the first answer, with their results."""
    office = Office(data)
    calls = [call["function"] for call in messages[1].get("tool_calls") or []]
    return sorted((call["name"], office.call(call["name"], json.loads(call["arguments"])))
                  for call in calls)


def why_not_done(data, task, messages):
    """Empty where the task is done."""
    office = Office(data)
    made = set()
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call["function"]
            made.add((function["name"], office.call(function["name"],
                                                    json.loads(function["arguments"]))))
    if not task["calls"] and made:
        return "calls a tool without need"
    for call in task["calls"]:
        if (call["name"], office.call(call["name"], call["arguments"])) not in made:
            return f"does not call {call['name']}({call['arguments']})"
    last = messages[-1]
    if last["role"] != "assistant" or last["finish_reason"] == "tool_calls":
        return "never answers"
    text = re.sub(r"(?<=\d),(?=\d{3})", "", (last["content"] or "").lower())
    for any_of in task["answer"]:
        if not any(re.search(rf"(?<!\w){re.escape(each.lower())}(?!\w)", text) for each in any_of):
            return f"the answer lacks {' or '.join(any_of)}"
    return ""


def kv_of(rows):
    return {"policy": "full"} if rows == "full" else {"budget": int(rows)}


class Results:
    """What became of the tasks, by rows; written to `records` as it comes."""

    def __init__(self, rows, records, first_only=False):
        self.records = records
        self.first_only = first_only
        self.done = {each: {} for each in rows}
        self.n_prompt = dict.fromkeys(rows, 0)
        self.n_read = dict.fromkeys(rows, 0)
        self.first = {each: {} for each in rows}

    def add(self, rows, task, messages, reason, first):
        self.first[rows][task["id"]] = first
        self.done[rows].setdefault(task["kind"], []).append(not reason)
        for most, name in ((self.n_prompt, "prompt"), (self.n_read, "read")):
            most[rows] = max(most[rows], *(message.get(name, 0) for message in messages))
        if self.first_only:
            reason = " ".join(f"{name}: {result[:60]!r}" for name, result in first) or "no call"
        print(f"{rows:>5} {task['id']}: {reason or 'done'}", file=sys.stderr, flush=True)
        if self.records:
            record = {"rows": rows, "task": task["id"], "messages": messages}
            if not self.first_only:
                record.update(done=not reason, reason=reason)
            self.records.write(json.dumps(record) + "\n")
            self.records.flush()

    def as_full(self, rows):
        """How many tasks begin with the calls that are made with the full cache."""
        full = self.first.get("full")
        if full is None:
            return "-"
        same = [full.get(task) == first for task, first in self.first[rows].items()]
        return f"{sum(same)} of {len(same)}"

    def table(self):
        heads = ["rows"]
        if not self.first_only:
            heads += ["all", *KINDS.values()]
        heads += ["first calls as full", "longest prompt", "most read"]
        lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for rows, done in self.done.items():
            cells = [rows]
            if not self.first_only:
                kinds = [done.get(kind, []) for kind in KINDS]
                cells += [f"{sum(each)} of {len(each)}" for each in (sum(kinds, []), *kinds)]
            cells += [self.as_full(rows), self.n_prompt[rows], self.n_read[rows]]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        return "\n".join(lines)


def run(port, data, earlier, pairs, jobs, results):
    """Runs (rows, task) pairs, several at a time: answers that are written together read the
    weights once."""
    most_turns = 1 if results.first_only else MOST_TURNS
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(converse, port, data, earlier, task, kv_of(rows), most_turns):
                   (rows, task) for rows, task in pairs}
        for finished in concurrent.futures.as_completed(running):
            rows, task = running[finished]
            messages = finished.result()
            results.add(rows, task, messages, why_not_done(data, task, messages),
                        first_calls(data, messages))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--rows", default="full,1024,512,256", help="rows kept of each prompt")
    parser.add_argument("--tasks", default="", help="only those whose id has this text")
    parser.add_argument("--history", type=int, default=0,
                        help="tokens of the conversation before each task")
    parser.add_argument("--first-only", action="store_true", help="only each task's first answer")
    parser.add_argument("--jobs", type=int, default=8, help="tasks at a time")
    parser.add_argument("--records", help="a file for the conversations")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[],
                        help="further options of snapkv serve, last of all")
    options = parser.parse_args()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent_tasks.json")) as f:
        data = json.load(f)
    tasks = [task for task in data["tasks"] if options.tasks in task["id"]]
    if not tasks:
        parser.error(f"no task's id has '{options.tasks}'")
    records = open(options.records, "w") if options.records else None
    results = Results(options.rows.split(","), records, options.first_only)
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, options.model, folder,
                        ["-c", str(CONTEXT + options.history), "--parallel", str(options.jobs),
                         *options.serve])
        try:
            earlier = history(options.history, lambda text: len(
                post(server.port, {"content": text}, "/tokenize")["tokens"]))
            n_tokens = read_beginning(server.port, data, earlier)
            print(f"{n_tokens} tokens before the tasks were read in {time.time() - begin:.0f} s",
                  file=sys.stderr, flush=True)
            run(server.port, data, earlier, [(rows, task) for task in tasks
                                                     for rows in options.rows.split(",")],
                options.jobs, results)
        finally:
            server.end()
    print(results.table())
    print(f"\n{(time.time() - begin) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
