#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the same answers with and without guessed tokens: snapkv, llama.cpp and OpenVINO GenAI.

  bench/compare_drafts.py MODEL.gguf [--tasks FILE] [--engines NAME,...] [--threads 2] [--rounds 1]
                          [--draft-model FILE] [--snapkv PROGRAM] [--llama-server COMMAND]
                          [--llama-model NAME] [--llama-draft-model NAME] [--openvino-python PYTHON]

FILE (bench/draft_tasks.jsonl, with the texts of `make texts`) has a JSON object a line: name, file (a
text, relative to FILE), first_bytes (how much of it), request (what is asked of it) and n_predict,
the most tokens of the answer. Every engine gets the text and the request as one message
of a user, and writes the likeliest tokens. Prints a line of JSON for each answer: tokens, tokens per
second of the answer alone, and the guesses that were right. Engines:

  snapkv, snapkv-lookup, snapkv-self, snapkv-model
        --draft off, lookup, self (512 rows) and --draft-model, each with every row kept
  snapkv-1024
        --draft lookup with 1024 rows, the default
  llama, llama-ngram-simple, llama-ngram-map-k, llama-ngram-mod, llama-ngram-cache, llama-model
        llama.cpp without guesses, with each of its ways to look them up, and with --draft-model.
        --llama-server is its llama-server, several words if need be, with the models as
        --llama-model and --llama-draft-model name them there
  openvino, openvino-lookup
        OpenVINO GenAI without guesses and with its prompt lookup
"""

import argparse
import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PORT = 8097
FULL = ["--kv-policy", "full"]
SNAPKV = {"snapkv": [*FULL, "--draft", "off"], "snapkv-lookup": [*FULL, "--draft", "lookup"],
          "snapkv-self": ["--draft", "self", "--kv-budget", "512"], "snapkv-model": FULL,
          "snapkv-1024": ["--draft", "lookup"]}
LLAMA_LOOKUP = ("ngram-simple", "ngram-map-k", "ngram-mod", "ngram-cache")
LLAMA = ("llama", *(f"llama-{kind}" for kind in LLAMA_LOOKUP), "llama-model")
OPENVINO = ("openvino", "openvino-lookup")
ENGINES = (*SNAPKV, *LLAMA, *OPENVINO)


def post(path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def is_up():
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health") as reply:
            return reply.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


@contextlib.contextmanager
def server(command):
    """The command runs a server at PORT, which ends with the block."""
    if is_up():
        sys.exit(f"compare_drafts.py: port {PORT} is taken")
    with tempfile.TemporaryFile() as log, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process:
        try:
            for _ in range(600):
                if is_up():
                    break
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"compare_drafts.py: {' '.join(command)}: exit status "
                             f"{process.returncode}\n{log.read().decode(errors='replace')[-2000:]}")
                time.sleep(0.1)
            else:
                sys.exit(f"compare_drafts.py: {' '.join(command)}: no answer after a minute")
            yield
        finally:
            process.terminate()


def command_of(options, engine):
    shared = ["--port", str(PORT), "-c", str(options.context), "-t", str(options.threads)]
    if engine in SNAPKV:
        more = ["--draft-model", options.draft_model] if engine == "snapkv-model" else []
        return [options.snapkv, "serve", "-m", options.model, *shared, *SNAPKV[engine], *more]
    command = [*shlex.split(options.llama_server), "-m", options.llama_model or options.model, *shared,
               "--parallel", "1"]
    if engine == "llama-model":
        return [*command, "--spec-type", "draft-simple", "--spec-draft-model",
                options.llama_draft_model or options.draft_model]
    return command if engine == "llama" else [*command, "--spec-type", engine.removeprefix("llama-")]


def ask_server(task):
    """Timings have the same names in both servers."""
    reply = post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": task["message"]}], "temperature": 0, "top_k": 1,
        "max_tokens": task["n_predict"], "cache_prompt": False})
    timings = reply["timings"]
    return {"tokens": timings["predicted_n"], "answer_tok_s": timings["predicted_per_second"],
            "guessed": timings.get("draft_n", 0), "right": timings.get("draft_n_accepted", 0),
            "begins": reply["choices"][0]["message"]["content"][:40]}


def openvino_worker(engine, model, n_threads):
    """In a process of its own, with the Python that has the package: a line of JSON for each of
    standard input's."""
    import openvino_genai as genai  # pylint: disable=import-outside-toplevel
    scheduler = genai.SchedulerConfig()
    scheduler.enable_prefix_caching = False
    scheduler.max_num_batched_tokens = 512
    lookup = {"prompt_lookup": True} if engine == "openvino-lookup" else {}
    pipeline = genai.LLMPipeline(model, "CPU", scheduler_config=scheduler,
                                 INFERENCE_NUM_THREADS=int(n_threads), **lookup)
    for line in sys.stdin:
        task = json.loads(line)
        config = genai.GenerationConfig(max_new_tokens=task["n_predict"], do_sample=False)
        if lookup:
            config.num_assistant_tokens = 5
            config.max_ngram_size = 3
        history = genai.ChatHistory([{"role": "user", "content": task["message"]}])
        result = pipeline.generate(history, config)
        metrics = result.perf_metrics
        n_tokens = metrics.get_num_generated_tokens()
        seconds = (metrics.get_generate_duration().mean - metrics.get_ttft().mean) / 1000
        print(json.dumps({"tokens": n_tokens, "answer_tok_s": (n_tokens - 1) / seconds,
                          "prompt_tokens": metrics.get_num_input_tokens(),
                          "begins": result.texts[0][:40]}), flush=True)


def answers(options, engine, tasks):
    """What the engine reports of each task, in order."""
    if engine in OPENVINO:
        lines = "".join(json.dumps(task) + "\n" for task in tasks)
        done = subprocess.run([options.openvino_python, __file__, "--worker", engine, options.model,
                               str(options.threads)], input=lines, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"compare_drafts.py: {engine}: exit status {done.returncode}\n"
                     + done.stderr[-2000:])
        yield from map(json.loads, done.stdout.splitlines())
        return
    with server(command_of(options, engine)):
        for task in tasks:
            yield ask_server(task)


def read_tasks(path):
    tasks = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    for task in tasks:
        text = (path.parent / task["file"]).read_bytes()[:task["first_bytes"]]
        task["message"] = text.decode(errors="ignore") + "\n\n" + task["request"]
    return tasks


def main():
    if sys.argv[1:2] == ["--worker"]:
        openvino_worker(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("--tasks", type=pathlib.Path,
                        default=pathlib.Path(__file__).with_name("draft_tasks.jsonl"))
    parser.add_argument("--engines", default="snapkv,snapkv-lookup")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--context", type=int, default=32768)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--draft-model", default="")
    parser.add_argument("--snapkv", default="build/release/bin/snapkv")
    parser.add_argument("--llama-server", default="llama-server")
    parser.add_argument("--llama-model", default="")
    parser.add_argument("--llama-draft-model", default="")
    parser.add_argument("--openvino-python", default=sys.executable)
    options = parser.parse_args()
    engines = options.engines.split(",")
    for engine in engines:
        if engine not in ENGINES:
            sys.exit(f"compare_drafts.py: --engines {engine}: expected some of {', '.join(ENGINES)}")
    tasks = read_tasks(options.tasks)
    for _ in range(options.rounds):
        for engine in engines:
            for task, figures in zip(tasks, answers(options, engine, tasks)):
                figures["answer_tok_s"] = round(figures["answer_tok_s"], 2)
                print(json.dumps({"engine": engine, "task": task["name"], **figures}), flush=True)


if __name__ == "__main__":
    main()
