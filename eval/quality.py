#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what docs/quality.md says, and writes its table and picture from the records.

  eval/quality.py [--snapkv PROGRAM] [--models DIR] [--texts DIR] [--out DIR] [--only NAME,...]

`make quality` runs it. Needs the models of `make models` and the texts of `make texts`. Records go to
--out and are continued: what they have is not asked again. The table and the picture's name stand in
docs/quality.md between the lines <!-- table --> and <!-- end -->; the picture is docs/quality.svg.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
POLICIES = ("snapkv", "chunkkv", "snapkv-max")
SMOL, GEMMA, OWN = "SmolLM2 135M", "Gemma 3 270M", "needle.gguf"
FILES = {SMOL: "SmolLM2-135M-Instruct.Q4_1.gguf", GEMMA: "gemma-3-270m-q4_k_m.gguf"}
DATA = "eval/texts/questions.jsonl"
QUESTIONS = ["--data", DATA, "--half", "report"]
KINDS = ("prose", "manual", "reference", "code")
AWARE = ["--policies", "full," + ",".join(POLICIES), "--seed", "7"]
FACTS = ["--lengths", "2000", "--depths", "10", "--samples", "2", "--budgets", "128,256"]


class Task:
    """A row of the table for each budget, or for each kind of text: one command on one model."""

    def __init__(self, name, title, model, command, budgets, policies=POLICIES, kinds=()):
        self.name, self.title, self.model = name, title, model
        self.command, self.budgets, self.policies, self.kinds = command, budgets, policies, kinds


def tasks(texts):
    prose = ["--haystack", f"{texts}/prose"]
    qa = ["qa", *QUESTIONS, "--texts", texts, "--budgets", "128,256,512",
          "--policies", "full," + ",".join(POLICIES)]
    yield Task("kinds-gemma", "the same by kind of text", GEMMA,
               ["qa", *QUESTIONS, "--texts", texts, "--kv-ratio", "0.1",
                "--policies", "full," + ",".join(POLICIES)], ("10%",), kinds=KINDS)
    # SmolLM2 answers few questions in completion form, so it is asked in a chat
    yield Task("qa-gemma", "questions about real texts", GEMMA, qa, (128, 256, 512))
    yield Task("chat-smol", "questions about real texts, as a chat", SMOL,
               [*qa, "--chat", "--no-prefix"], (128, 256, 512))
    for model, name in ((GEMMA, "gemma"), (SMOL, "smol")):
        yield Task(f"fact-{name}", "a number in prose", model,
                   ["needle", *prose, *AWARE, *FACTS], (128, 256))
        yield Task(f"sentence-{name}", "a sentence in prose, repeated", model,
                   ["needle", "--kind", "text", *prose, *AWARE, *FACTS], (128, 256))
        yield Task(f"keys-{name}", "one number of four in prose", model,
                   ["needle", "--kind", "multi-key", *prose, *AWARE, *FACTS], (128, 256))
    yield Task("four-own", "four numbers in generated text", OWN,
               ["needle", "--kind", "multi-query", *AWARE, *FACTS], (128, 256))
    agnostic = ["qa", *QUESTIONS, "--texts", texts, "--budgets", "256,512",
                "--policies", "full,keydiff,lagkv,snapkv-max", "--question-agnostic"]
    yield Task("agnostic-gemma", "questions, compressed before they were known", GEMMA, agnostic,
               (256, 512), ("keydiff", "lagkv", "snapkv-max"))
    stored = ["qa", *QUESTIONS, "--texts", texts, "--budgets", "256,512", "--keep-full",
              "--policies", "full,snapkv-max"]
    yield Task("stored-gemma", "questions to stored rows (compress)", GEMMA, stored, (256, 512),
               ("snapkv-max",))


def run(task, options):
    model = (ROOT / "models/needle.gguf" if task.model == OWN
             else pathlib.Path(options.models) / FILES[task.model])
    records = pathlib.Path(options.out) / f"{task.name}.jsonl"
    command = [options.snapkv, "eval", task.command[0], "-m", str(model), *task.command[1:],
               "--out", str(records), "--no-progress"]
    if records.exists():
        command.append("--resume")
    print("+", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, cwd=ROOT, check=True)
    return records


def read(path):
    """scores[policy, budget][id]; the full cache has the budget 0, and a share is "10%"."""
    scores = {}
    for line in path.read_text().splitlines():
        record = json.loads(line)
        kept = record["configuration"]
        ratio = f"{100 * kept['ratio']:.0f}%" if "ratio" in kept else 0
        key = (kept["policy"], kept.get("budget", ratio))
        scores.setdefault(key, {})[record["id"]] = record["score"]
    return scores


def share(scores, policy, budget):
    """The mean score where the full cache answers, and of how many prompts."""
    counted = [i for i, score in scores["full", 0].items() if score >= 0.5]
    found = scores.get((policy, budget))
    if found is None or not counted:
        return None, len(counted)
    return sum(found[i] for i in counted) / len(counted), len(counted)


def of_kind(scores, kind):
    """The scores of the questions about one kind of text. Records' ids are "qa QUESTION ..."."""
    lines = (ROOT / DATA).read_text(encoding="utf-8").splitlines()
    kinds = {q["id"]: q["kind"] for q in map(json.loads, lines)}
    return {key: {i: score for i, score in of_key.items() if kinds[i.split()[1]] == kind}
            for key, of_key in scores.items()}


def rows_of(task, scores):
    """(title, model, budget, scores) of each row of a task; titles are not repeated."""
    if task.kinds:
        for kind in task.kinds:
            title = f"{task.title}: {kind}" if kind == task.kinds[0] else kind
            model = task.model if kind == task.kinds[0] else ""
            yield title, model, task.budgets[0], of_kind(scores, kind)
        return
    for budget in task.budgets:
        first = budget == task.budgets[0]
        yield task.title if first else "", task.model if first else "", budget, scores


def table(measured):
    columns = list(POLICIES)
    lines = ["| asked | model | right with the full cache | rows kept | "
             + " | ".join(columns) + " | others |",
             "|---|---|---|---|" + "---|" * (len(columns) + 1)]
    for task, all_scores in measured:
        for title, model, budget, scores in rows_of(task, all_scores):
            asked = len(scores["full", 0])
            cells = []
            for policy in columns:
                value, n = share(scores, policy, budget)
                cells.append("" if value is None else f"{100 * value:.0f}%")
            others = []
            for policy in task.policies:
                value, _ = share(scores, policy, budget)
                if policy not in columns and value is not None:
                    others.append(f"{policy} {100 * value:.0f}%")
            head = (title, model, f"{n} of {asked}" if title else "")
            lines.append("| " + " | ".join([*head, str(budget), *cells, ", ".join(others)]) + " |")
    return "\n".join(lines)


def picture(measured):
    """Questions about real texts, Gemma 3: share against rows."""
    budgets = (128, 256, 512)
    scores = next(scores for task, scores in measured if task.name == "qa-gemma")
    colours = {"snapkv": "#888888", "chunkkv": "#d08a2e", "snapkv-max": "#2a6fb0"}
    x = {b: 70 + 180 * i for i, b in enumerate(budgets)}
    def y(v): return 250 - 200 * (v - 0.4) / 0.6
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 300" '
           'font-family="sans-serif" font-size="13">',
           '<rect width="560" height="300" fill="white"/>',
           '<text x="20" y="24">Gemma 3 270M: share of what the full cache answers, '
           'by rows kept of about 2500</text>']
    for percent in (40, 60, 80, 100):
        at = y(percent / 100)
        out.append(f'<line x1="60" x2="440" y1="{at:.0f}" y2="{at:.0f}" stroke="#dddddd"/>'
                   f'<text x="20" y="{at + 4:.0f}">{percent}%</text>')
    for b in budgets:
        out.append(f'<text x="{x[b]}" y="275" text-anchor="middle">{b} rows</text>')
    for policy in POLICIES:
        points = [(x[b], y(share(scores, policy, b)[0])) for b in budgets]
        line = " ".join(f"{px},{py:.1f}" for px, py in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colours[policy]}" '
                   'stroke-width="2.5"/>')
        out += [f'<circle cx="{px}" cy="{py:.1f}" r="4" fill="{colours[policy]}"/>'
                for px, py in points]
    # the names are below each other, in the order of the lines' ends
    ends = sorted((y(share(scores, p, budgets[-1])[0]), p) for p in POLICIES)
    at = 0
    for py, policy in ends:
        at = max(py + 4, at + 16)
        out.append(f'<text x="445" y="{at:.0f}" fill="{colours[policy]}">{policy}</text>')
    return "\n".join(out) + "\n</svg>\n"


def put(path, text):
    page = path.read_text()
    begin, end = page.index("<!-- table -->"), page.index("<!-- end -->")
    path.write_text(page[:begin] + "<!-- table -->\n" + text + "\n" + page[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--snapkv", default=str(ROOT / "build/release/bin/snapkv"))
    parser.add_argument("--models", default=str(ROOT / "models/real"))
    parser.add_argument("--texts", default=str(ROOT / "texts"))
    parser.add_argument("--out", default=str(ROOT / "build/quality"))
    parser.add_argument("--only", default="", help="names of tasks; prints their table alone")
    options = parser.parse_args()
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    chosen = [t for t in tasks(options.texts)
              if not options.only or t.name in options.only.split(",")]
    if not chosen:
        names = ", ".join(t.name for t in tasks(options.texts))
        sys.exit(f"quality.py: --only {options.only}: expected some of {names}")
    measured = [(task, read(run(task, options))) for task in chosen]
    text = table(measured)
    print(text)
    if options.only:
        return
    put(ROOT / "docs/quality.md", text)
    (ROOT / "docs/quality.svg").write_text(picture(measured))


if __name__ == "__main__":
    main()
