#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the same text with snapkv, llama.cpp, ik_llama.cpp and OpenVINO GenAI: time and memory.

  bench/compare_engines.py MODEL.gguf TEXT [--tokens 512,4096] [--generate 64] [--threads 2]
                           [--engines NAME,...] [--snapkv PROGRAM] [--llama COMMAND]
                           [--ik-llama PROGRAM] [--openvino-python PYTHON] [--rounds 1]

TEXT's first tokens are the prompt, without a template, and every engine writes the same number of
tokens after it, the likeliest ones. Prints a line of JSON for each run: seconds until the model is
loaded, tokens per second of the prompt and of the answer, and the most resident memory. Engines:

  snapkv            every row kept
  snapkv-1024       1024 rows kept (the default)
  snapkv-sparse     the same, --prefill-attention sparse
  llama             llama.cpp; --llama is its llama-completion, several words if need be, with MODEL as
                    --llama-model names it there, and the text in --llama-folder
  ik-llama          ik_llama.cpp; --ik-llama is its llama-cli
  openvino          OpenVINO GenAI, every row kept
  openvino-evict    1024 rows kept: its cache eviction, which chooses by SnapKV's window at first
  openvino-sparse   the same, and XAttention while the prompt is read

OpenVINO GenAI is a package of PyPI (openvino-genai), asked for 8-bit rows, which is its default.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SNAPKV = {"snapkv": ["--kv-policy", "full"], "snapkv-1024": [],
          "snapkv-sparse": ["--prefill-attention", "sparse"]}
OPENVINO = ("openvino", "openvino-evict", "openvino-sparse")
ENGINES = (*SNAPKV, "llama", "ik-llama", *OPENVINO)
MIB = 1 << 20


def run(command, **named):
    """Output of a command and the most memory, in MiB, that it had."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **named)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        texts = out.read().decode(errors="replace"), err.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"compare_engines.py: {' '.join(command)}: exit status {process.returncode}\n"
                 + texts[1][-2000:])
    return *texts, usage.ru_maxrss * 1024 / MIB


def run_snapkv(options, engine, text):
    out, _, peak = run([options.snapkv, "generate", "-m", options.model, "-f", text, "--no-chat",
                        "-n", str(options.generate), "--ignore-eos", "--temp", "0", "--draft", "off",
                        "-t", str(options.threads), "--json", "--no-progress", *SNAPKV[engine]])
    timings = json.loads(out)["timings"]
    return {"load_s": timings["load_seconds"],
            "prompt_tok_s": timings["prefill_tokens_per_second"],
            "answer_tok_s": timings["decode_tokens_per_second"], "peak_mib": peak}


def llama_rate(text, what):
    """Tokens per second of a line of llama.cpp's timings."""
    found = re.search(rf"(?<!prompt ){what} time =.*?([\d.]+) tokens per second", text)
    if found is None:
        sys.exit(f"compare_engines.py: llama.cpp printed no '{what} time'")
    return float(found[1])


def run_llama(options, engine, text):
    """llama.cpp or its fork, whose options differ by that which turns the conversation off."""
    shared = ["-n", str(options.generate), "--ignore-eos", "--temp", "0",
              "-t", str(options.threads), "-c", str(options.n_prompt + options.generate + 64)]
    if engine == "ik-llama":
        program, *more = options.ik_llama.split()
        program = os.path.abspath(shutil.which(program) or program)
        with tempfile.TemporaryDirectory() as folder:  # for its log
            out, err, peak = run([program, *more, "-m", os.path.abspath(options.model), "-f", text,
                                  *shared], cwd=folder)
    else:
        folder = pathlib.Path(options.llama_folder)
        name = f"prompt-{os.getpid()}.txt"
        (folder / name).write_bytes(pathlib.Path(text).read_bytes())
        try:
            out, err, peak = run([*options.llama.split(), "-m", options.llama_model or options.model,
                                  "-f", name, "-no-cnv", *shared], cwd=folder)
        finally:
            (folder / name).unlink()
    load = re.search(r"load time =\s*([\d.]+) ms", out + err)
    return {"load_s": float(load[1]) / 1000 if load else None,
            "prompt_tok_s": llama_rate(out + err, "prompt eval"),
            "answer_tok_s": llama_rate(out + err, "eval"), "peak_mib": peak}


def run_openvino(options, engine, text):
    ids, _, _ = run([options.snapkv, "tokenize", "-m", options.model, "-f", text, "--ids", "--no-bos"])
    with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:
        file.write(ids)
        file.flush()
        out, _, peak = run([options.openvino_python, __file__, "--worker", engine, options.model,
                            file.name, str(options.generate), str(options.threads),
                            str(options.n_prompt)])
    return {**json.loads(out.splitlines()[-1]), "peak_mib": peak}


def openvino_worker(engine, model, ids_file, n_generate, n_threads, n_prompt):
    """In a process of its own, with the Python that has the package."""
    import numpy  # pylint: disable=import-outside-toplevel
    import openvino  # pylint: disable=import-outside-toplevel
    import openvino_genai as genai  # pylint: disable=import-outside-toplevel
    scheduler = genai.SchedulerConfig()
    scheduler.enable_prefix_caching = False
    scheduler.max_num_batched_tokens = 512
    scheduler.cache_size = 0  # as large as it must be
    if engine != "openvino":
        scheduler.use_cache_eviction = True
        scheduler.cache_eviction_config = genai.CacheEvictionConfig(
            start_size=32, recent_size=128, max_cache_size=1024,
            aggregation_mode=genai.AggregationMode.NORM_SUM, snapkv_window_size=16)
    if engine == "openvino-sparse":
        scheduler.use_sparse_attention = True
        scheduler.sparse_attention_config = genai.SparseAttentionConfig(
            mode=genai.SparseAttentionMode.XATTENTION)
    begin = time.monotonic()
    pipeline = genai.LLMPipeline(model, "CPU", scheduler_config=scheduler,
                                 INFERENCE_NUM_THREADS=int(n_threads))
    load = time.monotonic() - begin
    config = genai.GenerationConfig(max_new_tokens=int(n_generate), ignore_eos=True,
                                    do_sample=False, apply_chat_template=False)
    # its own tokenizer of a GGUF file leaves out what follows 8192 tokens
    ids = numpy.array([json.loads(pathlib.Path(ids_file).read_text(encoding="utf-8"))])
    result = pipeline.generate(genai.TokenizedInputs(openvino.Tensor(ids),
                                                     openvino.Tensor(numpy.ones_like(ids))), config)
    metrics = result.perf_metrics
    n_input = metrics.get_num_input_tokens()
    if abs(n_input - int(n_prompt)) > 16:
        sys.exit(f"OpenVINO GenAI read {n_input} tokens, expected about {n_prompt}")
    print(json.dumps({"load_s": load, "prompt_tok_s": n_input / (metrics.get_ttft().mean / 1000),
                      "answer_tok_s": 1000 / metrics.get_tpot().mean, "n_prompt": n_input}))


def first_tokens(options, n_tokens):
    """The text of the first tokens of options.text."""
    ids, _, _ = run([options.snapkv, "tokenize", "-m", options.model, "-f", options.text, "--ids",
                     "--no-bos"])
    ids = json.loads(ids)
    if len(ids) < n_tokens:
        sys.exit(f"compare_engines.py: {options.text} has {len(ids)} tokens, {n_tokens} are wanted")
    with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:  # too many for a command line
        json.dump(ids[:n_tokens], file)
        file.flush()
        return run([options.snapkv, "detokenize", "-m", options.model, "-f", file.name])[0]


def main():
    if sys.argv[1:2] == ["--worker"]:
        openvino_worker(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--tokens", default="512,4096")
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default="snapkv,snapkv-1024")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--snapkv", default="build/release/bin/snapkv")
    parser.add_argument("--llama", default="llama-completion")
    parser.add_argument("--llama-model", default="")
    parser.add_argument("--llama-folder", default=".")
    parser.add_argument("--ik-llama", default="llama-cli")
    parser.add_argument("--openvino-python", default=sys.executable)
    options = parser.parse_args()
    engines = options.engines.split(",")
    for engine in engines:
        if engine not in ENGINES:
            sys.exit(f"compare_engines.py: --engines {engine}: expected some of {', '.join(ENGINES)}")
    for n_tokens in map(int, options.tokens.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "prompt.txt"
            text.write_text(first_tokens(options, n_tokens), encoding="utf-8")
            options.n_prompt = n_tokens
            for _ in range(options.rounds):
                for engine in engines:
                    runner = (run_snapkv if engine in SNAPKV else
                              run_openvino if engine in OPENVINO else run_llama)
                    figures = {name: value if value is None else round(value, 2)
                               for name, value in runner(options, engine, str(text)).items()}
                    print(json.dumps({"engine": engine, "n_prompt": n_tokens,
                                      "n_generate": options.generate, **figures}), flush=True)


if __name__ == "__main__":
    main()
