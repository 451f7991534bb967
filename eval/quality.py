#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what docs/quality.md says, and writes its table and picture from the records.

  eval/quality.py [--half report|choose] [--models DIR] [--texts DIR] [--out DIR] [--only NAME,...]
                  [--judges NAME,...] [--snapkv PROGRAM] [--list]

`make quality` runs it. Needs the models of `make models LARGE=1` and the texts of `make texts`. Takes
hours; stopped and begun again, it goes on where it was: records go to OUT/HALF, and what they have is not
asked again. With the half to report on, the table between <!-- table --> and <!-- end --> in
docs/quality.md and the picture docs/quality.svg are written from all records that OUT has of tasks
that are done; with the other half the table is printed only.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
POLICIES = ("snapkv", "snapkv-max")
DATA = "eval/texts/questions.jsonl"
KINDS = ("prose", "manual", "reference", "code")
LONG = (8000, 16000, 30000)  # tokens of documents made of several texts
SEEDS = {"choose": "1", "report": "7"}  # of what is drawn: facts, RULER
UNKNOWN = ("kvzip", "keydiff")


class Judge:
    """A model that is asked."""

    def __init__(self, name, title, file, chat, fills_gaps=False):
        self.name, self.title, self.file, self.chat = name, title, file, chat
        self.fills_gaps = fills_gaps  # its vocabulary has fill-in-the-middle tokens


JUDGES = (
    Judge("qwen-1.5b", "Qwen2.5 Coder 1.5B", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", True,
          fills_gaps=True),
    Judge("qwen-0.5b", "Qwen2.5 Coder 0.5B", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", True,
          fills_gaps=True),
    # a base model, which has windows: it completes texts
    Judge("gemma-270m", "Gemma 3 270M", "gemma-3-270m-q4_k_m.gguf", False),
)


class Task:
    """A command on one model, and its rows of the table: one for each budget, or for each kind of text.

    `of_means`: scores are shares, so that their means are compared; `of_facts`: the facts that
    summaries name are; otherwise the prompts are counted that the full cache answers. The budget
    "auto" is for policies that have it. `refreshes`: each policy is asked without --kv-refresh and,
    in the column "others", with it. `refresh_limits` are those of `snapkv eval summary`."""

    def __init__(self, judge, name, title, command, budgets, policies=POLICIES, of_means=False,
                 of_facts=False, refresh_limits=(0,), as_chat=True, refreshes=False):
        self.judge, self.title, self.command = judge, title, command
        self.chat = judge.chat and as_chat
        self.refreshed = tuple(f"{policy} refreshed" for policy in policies if refreshes)
        self.name = f"{judge.name}-{name}"
        self.budgets, self.policies = budgets, policies
        self.of_means, self.of_facts, self.refresh_limits = of_means, of_facts, refresh_limits
        self.rows = []  # that each prompt kept per layer and head with the budget "auto"

    def kept(self):
        """The rows kept, as the table names them."""
        return [kept_name(budget, beyond) for budget in self.budgets
                for beyond in self.refresh_limits]

    def arguments(self):
        chat = ["--chat"] if self.chat else []
        policies = ["full", *self.policies]
        refresh = ["--refresh-limits", ",".join(map(str, self.refresh_limits))]
        return [*self.command, *chat, "--policies", ",".join(policies),
                "--budgets", ",".join(map(str, self.budgets)), *(refresh if self.of_facts else [])]


def kept_name(budget, beyond):
    """A budget, and after how many rows more the rows are chosen again (0: never)."""
    return f"{budget}, again every {beyond}" if beyond else budget


def code_file(options, kind):
    return pathlib.Path(options.out) / options.half / f"{kind}-questions.jsonl"


def make_code_questions(options, kind, per_text, n_bytes):
    """Writes the questions of one kind about the code of one half, unless they are there."""
    file = code_file(options, kind)
    if file.exists():
        return
    lines = (ROOT / "eval/texts/manifest.jsonl").read_text(encoding="utf-8").splitlines()
    code = [text["name"] for text in map(json.loads, lines)
            if text["kind"] == "code" and text["half"] == options.half]
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([options.snapkv, "eval", "make-qa", "--texts",
                    *(f"{options.texts}/{name}" for name in code), "--kinds", kind, "--per-text",
                    str(per_text), "--bytes", str(n_bytes), "-o", str(file)], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)


def tasks_of(judge, options):
    """The tasks of one model, the most telling first."""
    texts, half = options.texts, options.half
    qa = ["qa", "--data", DATA, "--half", half, "--texts", texts]
    prose, seed = ["--haystack", f"{texts}/prose"], ["--seed", SEEDS[half]]
    facts = ["needle", *prose, *seed, "--lengths", "4000", "--depths", "10", "--samples", "2"]

    def task(name, title, command, budgets, *more, **named):
        return Task(judge, name, title, command, budgets, *more, **named)

    yield task("texts", "questions about real texts", qa, (64, 128, 256, 512, "auto"))
    if judge.chat:  # Gemma 3 270M hardly answers at such lengths
        for n in LONG:
            yield task(f"documents-{n // 1000}k", f"documents of {n} tokens",
                       [*qa, "--join", str(n)], (128, 256, 512, 1024, "auto"))
    yield task("unknown", "questions, compressed before they were known",
               [*qa, "--question-agnostic"], (256, 512, 1024), UNKNOWN)
    if judge.chat:
        yield task("unknown-16k", "the same, documents of 16000 tokens",
                   [*qa, "--join", "16000", "--question-agnostic"], (1600, 3200, 6400), UNKNOWN)
    yield task("fourth", "the fourth question of a conversation", [*qa, "--after", "3"],
               (128, 256, 512), refreshes=True)
    if judge.fills_gaps:
        yield task("fim-16k", "code to complete in the middle, 16000 tokens",
                   ["qa", "--data", str(code_file(options, "middle")), "--texts", f"{texts}/code",
                    "--join", "16000"], (128, 256, 512, 1024, "auto"), as_chat=False)
    yield task("stored", "questions to stored rows (compress)", [*qa, "--keep-full"], (128, 256),
               ("snapkv-max",))
    yield task("fact", "a number in prose, 4000 tokens", facts, (128, 256))
    yield task("facts", "four numbers in prose at once", [*facts, "--kind", "multi-query"],
               (128, 256, 512, "auto"))
    yield task("sentence", "a sentence in prose, repeated", [*facts, "--kind", "text"],
               (128, 256, "auto"))
    if judge.chat:
        yield task("code-16k", "parameters of functions, code of 16000 tokens",
                   ["qa", "--data", str(code_file(options, "signature")), "--texts", f"{texts}/code",
                    "--join", "16000", "--n-predict", "64"], (128, 256, 512, 1024, "auto"))
        yield task("q8", "questions about real texts, rows in 8 bits",
                   [*qa, "--kv-type", "q8_0"], (128, 256), ("snapkv-max",))
        summary = ["summary", "--data", DATA, "--half", half, "--texts", texts]
        facts_of = dict(of_facts=True, refresh_limits=(0, 32))
        yield task("summary", "facts in summaries of real texts", summary, (512, 1024),
                   ("snapkv-max",), **facts_of)
        yield task("summary-16k", "the same, documents of 16000 tokens",
                   [*summary, "--join", "16000", "--n-predict", "384"], (512, 1024),
                   ("snapkv-max",), **facts_of)
        for n in (4096, 16384):
            yield task(f"ruler-{n // 1024}k", f"RULER, {n} tokens",
                       ["ruler", *prose, *seed, "--lengths", str(n), "--samples", "3"],
                       (256, 512, 1024), of_means=True)


def minutes(seconds):
    return f"{seconds / 60:.1f} min"


def records_of(task, options):
    return pathlib.Path(options.out) / options.half / f"{task.name}.jsonl"


def mark_of(records):
    """A file that is there when the records are complete."""
    return records.with_suffix(".done")


def run(task, options, place):
    """Runs what a task's file of records lacks."""
    model = pathlib.Path(options.models) / task.judge.file
    records = records_of(task, options)
    records.parent.mkdir(parents=True, exist_ok=True)
    arguments = task.arguments()
    command = [options.snapkv, "eval", arguments[0], "-m", str(model), *arguments[1:],
               "--out", str(records)]
    if records.exists():
        command.append("--resume")
    print(f"[{place}] {task.name}: {' '.join(command)}", file=sys.stderr, flush=True)
    begin = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    mark_of(records).touch()
    print(f"[{place}] {task.name}: {minutes(time.monotonic() - begin)}", file=sys.stderr, flush=True)


def read(task, options):
    """scores[policy, budget][id], where the full cache has the budget 0; None unless it is done."""
    records = records_of(task, options)
    if not mark_of(records).exists():
        return None
    scores = {}
    for line in records.read_text().splitlines():
        record = json.loads(line)
        kept = record["configuration"]
        budget = "auto" if kept.get("least_attention") else kept.get("budget", 0)
        policy = kept["policy"]
        if kept.get("kv_refresh") and kept.get("kv_decode_limit"):
            budget = kept_name(budget, kept["kv_decode_limit"] - budget)
        elif kept.get("kv_refresh"):
            policy += " refreshed"
        score = record["facts" if task.of_facts else "score"]
        scores.setdefault((policy, budget), {})[record["id"]] = score
        if budget == "auto":
            task.rows.append(record["n_prompt"] * record["kv_bytes"] / record["kv_bytes_full"])
    return scores


def mean(values):
    return sum(values) / len(values)


def answered(scores):
    return [i for i, score in scores["full", 0].items() if score >= 0.5]


def share(task, scores, policy, budget):
    """What is left of the full cache's score; None where nothing was measured."""
    found, full = scores.get((policy, budget)), scores["full", 0]
    if found is None:
        return None
    if task.of_means or task.of_facts:
        whole = mean(full.values())
        return mean([found[i] for i in full]) / whole if whole > 0 else None
    counted = answered(scores)
    return mean([found[i] for i in counted]) if counted else None


def full_cell(task, scores):
    full = scores["full", 0]
    if task.of_means:
        return f"{100 * mean(full.values()):.0f}% of {len(full)}"
    if task.of_facts:
        return f"{sum(full.values())} in {len(full)}"
    return f"{len(answered(scores))} of {len(full)}"


def of_kind(scores, kind):
    """The scores of the questions about one kind of text. Records' ids are "qa QUESTION ..."."""
    lines = (ROOT / DATA).read_text(encoding="utf-8").splitlines()
    kinds = {q["id"]: q["kind"] for q in map(json.loads, lines)}
    return {key: {i: score for i, score in of_key.items() if kinds[i.split()[1]] == kind}
            for key, of_key in scores.items()}


def percent(value):
    return "" if value is None else f"{100 * value:.0f}%"


def line_of(task, title, judge, full, budget, scores):
    cells = [percent(share(task, scores, policy, budget)) for policy in POLICIES]
    others = [f"{policy} {percent(share(task, scores, policy, budget))}"
              for policy in (*task.policies, *task.refreshed) if policy not in POLICIES]
    kept = f"auto: {mean(task.rows):.0f}" if budget == "auto" and task.rows else str(budget)
    return "| " + " | ".join([title, judge, full, kept, *cells, ", ".join(others)]) + " |"


def table(measured):
    lines = ["| asked | model | right with the full cache | rows kept | " + " | ".join(POLICIES)
             + " | others |", "|---|---|---|---|" + "---|" * (len(POLICIES) + 1)]
    for task, scores in measured:
        title, judge, full = task.title, task.judge.title, full_cell(task, scores)
        for budget in task.kept():
            lines.append(line_of(task, title, judge, full, budget, scores))
            title = judge = full = ""
        if task.name == f"{JUDGES[0].name}-texts":
            for kind in KINDS:
                part = of_kind(scores, kind)
                lines.append(line_of(task, f"the same, {kind}", "", full_cell(task, part), 128, part))
    return "\n".join(lines)


STYLE = """<style>
.page{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}
.line{fill:none;stroke-width:2.5}
.s0{stroke:#0969da}.s1{stroke:#1a7f37}.s2{stroke:#bc4c00}.s3{stroke:#8250df}
.f0{fill:#0969da}.f1{fill:#1a7f37}.f2{fill:#bc4c00}.f3{fill:#8250df}
@media(prefers-color-scheme:dark){
.page{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#3d444d}
.s0{stroke:#58a6ff}.s1{stroke:#3fb950}.s2{stroke:#f0883e}.s3{stroke:#bc8cff}
.f0{fill:#58a6ff}.f1{fill:#3fb950}.f2{fill:#f0883e}.f3{fill:#bc8cff}}
</style>"""


def picture(measured):
    """Share against rows, a line for each length: the first judge, snapkv-max, questions known."""
    judge, budgets = JUDGES[0], (64, 128, 256, 512, 1024)
    names = {f"{judge.name}-texts": "2600 tokens",
             **{f"{judge.name}-documents-{n // 1000}k": f"{n} tokens" for n in LONG}}
    lines = [(names[task.name], {b: share(task, scores, "snapkv-max", b) for b in task.budgets})
             for task, scores in measured if task.name in names]
    lines = [(name, {b: v for b, v in values.items() if b != "auto"}) for name, values in lines]
    lowest = min(v for _, values in lines for v in values.values() if v is not None)
    bottom = max(0, int(10 * lowest - 0.5) / 10)
    x = {b: 80 + 90 * i for i, b in enumerate(budgets)}

    def y(value):
        return 290 - 230 * (value - bottom) / (1 - bottom)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 340" font-family="sans-serif" '
           'font-size="13">', STYLE, '<rect class="page" width="600" height="340"/>',
           f'<text x="20" y="24" class="ink" font-weight="bold">{judge.title}</text>',
           '<text x="20" y="42" class="faint">share of the full cache\'s answers that stay, '
           'by rows kept (snapkv-max)</text>']
    for tenth in range(round(10 * bottom), 11):
        at = y(tenth / 10)
        out.append(f'<line class="grid" x1="60" x2="460" y1="{at:.1f}" y2="{at:.1f}"/>'
                   f'<text class="faint" text-anchor="end" x="52" y="{at + 4:.1f}">{10 * tenth}%</text>')
    for b in budgets:
        rows = " rows" if b == budgets[-1] else ""
        out.append(f'<text class="faint" text-anchor="middle" x="{x[b]}" y="312">{b}{rows}</text>')
    ends = []
    for i, (name, values) in enumerate(lines):
        points = [(x[b], y(v)) for b, v in values.items() if v is not None]
        out.append(f'<polyline class="line s{i}" points="'
                   + " ".join(f"{px},{py:.1f}" for px, py in points) + '"/>')
        out += [f'<circle class="f{i}" cx="{px}" cy="{py:.1f}" r="4"/>' for px, py in points]
        ends.append((points[-1][1] + 4, i, name))
    label = 0
    for end, i, name in sorted(ends):  # names below each other, in the order of the lines' ends
        label = max(end, label + 18)
        out.append(f'<text class="f{i}" x="466" y="{label:.1f}">{name}</text>')
    return "\n".join(out) + "\n</svg>\n"


def put(path, text):
    page = path.read_text()
    begin, end = page.index("<!-- table -->"), page.index("<!-- end -->")
    path.write_text(page[:begin] + "<!-- table -->\n" + text + "\n" + page[end:])


def names(text, known, option):
    """The names in a list with commas, all if it is empty; exits if one is unknown."""
    chosen = text.split(",") if text else known
    for name in chosen:
        if name not in known:
            sys.exit(f"quality.py: {option} {name}: expected some of {', '.join(known)}")
    return chosen


def chosen_tasks(options):
    judges = names(options.judges, [judge.name for judge in JUDGES], "--judges")
    tasks = [task for judge in JUDGES if judge.name in judges
             for task in tasks_of(judge, options)]
    only = names(options.only, [task.name for task in tasks], "--only")
    return [task for task in tasks if task.name in only]


def check_files(tasks, options):
    for judge in dict.fromkeys(task.judge for task in tasks):
        file = pathlib.Path(options.models) / judge.file
        if not file.exists():
            sys.exit(f"quality.py: {file} is missing: `make models LARGE=1` fetches it, --models names "
                     "another folder, --judges other models")
    if not pathlib.Path(options.texts).is_dir():
        sys.exit(f"quality.py: {options.texts} is missing: `make texts` fetches the texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--snapkv", default=str(ROOT / "build/release/bin/snapkv"))
    parser.add_argument("--models", default=str(ROOT / "models/real"))
    parser.add_argument("--texts", default=str(ROOT / "texts"))
    parser.add_argument("--out", default=str(ROOT / "build/quality"))
    parser.add_argument("--half", default="report", choices=sorted(SEEDS),
                        help="questions to choose settings by, or to report on")
    parser.add_argument("--judges", default="", help="names of models")
    parser.add_argument("--only", default="", help="names of tasks")
    parser.add_argument("--list", action="store_true", help="print the tasks' names and end")
    options = parser.parse_args()
    tasks = chosen_tasks(options)
    if options.list:
        print("\n".join(task.name for task in tasks))
        return
    check_files(tasks, options)
    make_code_questions(options, "signature", 4, 16000)
    make_code_questions(options, "middle", 8, 40000)
    begin = time.monotonic()
    for i, task in enumerate(tasks):
        run(task, options, f"{i + 1}/{len(tasks)}")
        print(table([(task, read(task, options))]), flush=True)
    print(f"all tasks: {minutes(time.monotonic() - begin)}", file=sys.stderr)
    every = [task for judge in JUDGES for task in tasks_of(judge, options)]
    measured = [(task, scores) for task in every if (scores := read(task, options)) is not None]
    text = table(measured)
    print("\n" + text)
    if options.half == "report":
        put(ROOT / "docs/quality.md", text)
        (ROOT / "docs/quality.svg").write_text(picture(measured))


if __name__ == "__main__":
    main()
