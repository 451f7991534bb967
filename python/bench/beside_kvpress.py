#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""This engine beside kvpress (transformers) on one model: prefill and compression, memory, decoding.

  python/bench/beside_kvpress.py MODEL.gguf [--length 4000] [--budget 512] [--rounds 3] [--threads 2]

Both read the same GGUF file (transformers expands its blocks to f32) and compute in f32; a third
line is the engine as it computes by default, activations rounded to 8 bits. They compress the same
prompt by SnapKV with the same window, kernel and mean pooling, and decode greedily. Each
measurement is a process of its own, the engines take turns, and the best of the rounds counts; the worst is in
brackets, so that a busy machine shows; the processor's seconds of all threads, which depend less on
what else runs, stand beside the clock's. Memory is the peak of the resident set after the model was
loaded, the program and its libraries included. Needs torch, transformers, gguf, accelerate and
kvpress; SNAPKV_LIBRARY names the library where the package is not installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WINDOW, KERNEL = 32, 7
N_DECODED = 64
SAMPLE = Path(__file__).resolve().parents[2] / "models" / "sample_prompt.txt"


def forget_peak():
    """The kernel begins to look for the peak of the resident set again."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Watch:
    """Seconds since the last lap: (the clock's, the processor's)."""

    def __init__(self):
        self._last = self._now()

    @staticmethod
    def _now():
        return time.perf_counter(), time.process_time()

    def lap(self):
        before, self._last = self._last, self._now()
        return tuple(now - then for now, then in zip(self._last, before))


def measure_snapkv(job, compute="f32", kv_type="f32"):
    import snapkv
    model = snapkv.Model(job["model"], compute=compute, n_threads=job["threads"])
    session = model.session(kv_policy="snapkv", kv_type=kv_type, kv_budget=job["budget"],
                            kv_window_size=WINDOW, kv_kernel_size=KERNEL, kv_pooling="avg")
    forget_peak()
    watch = Watch()
    session.prefill(job["ids"])
    prefill = watch.lap()
    answer = []
    for _ in range(N_DECODED):
        answer.append(int(session.logits.argmax()))
        session.decode(answer[-1])
    return prefill, watch.lap(), answer


def measure_kvpress(job):
    import torch
    from kvpress import SnapKVPress
    from transformers import AutoModelForCausalLM, logging
    logging.disable_progress_bar()
    torch.set_num_threads(job["threads"])
    path = Path(job["model"])
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name,
                                                 dtype=torch.float32).eval()
    n = len(job["ids"])
    press = SnapKVPress(compression_ratio=1 - job["budget"] / n, window_size=WINDOW,
                        kernel_size=KERNEL)
    forget_peak()
    with torch.no_grad():
        watch = Watch()
        with press(model):
            out = model(torch.tensor([job["ids"]]), use_cache=True, logits_to_keep=1)
        prefill = watch.lap()
        answer = []
        for i in range(N_DECODED):
            answer.append(int(out.logits[0, -1].argmax()))
            out = model(torch.tensor([answer[-1:]]), past_key_values=out.past_key_values,
                        position_ids=torch.tensor([[n + i]]), use_cache=True)
    return prefill, watch.lap(), answer


def measure_default(job):
    return measure_snapkv(job, compute="auto", kv_type="f16")


ENGINES = {"snapkv": measure_snapkv, "snapkv, default": measure_default, "kvpress": measure_kvpress}


def child(engine, job_file):
    prefill, decode, answer = ENGINES[engine](json.loads(Path(job_file).read_text()))
    print(json.dumps({"prefill_s": prefill[0], "prefill_cpu_s": prefill[1],
                      "tokens_per_s": N_DECODED / decode[0], "peak_mib": peak_mib(),
                      "answer": answer}))


def prompt_ids(path, length):
    import snapkv
    ids = snapkv.Model(path).tokenize(SAMPLE.read_text() * (1 + length // 1000))
    return ids[:length]


def measure(engine, job_file):
    quiet = {"TQDM_DISABLE": "1", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([sys.executable, __file__, "--child", engine, job_file], check=True,
                          stdout=subprocess.PIPE, env={**os.environ, **quiet})
    return json.loads(done.stdout.splitlines()[-1])


# field: (heading, digits, the best of several)
COLUMNS = {"prefill_s": ("prefill and compression, s", 2, min),
           "prefill_cpu_s": ("of the processor, s", 2, min),
           "peak_mib": ("peak resident, MiB", 0, min),
           "tokens_per_s": ("decode, tok/s", 1, max)}


def cell(runs, field):
    _, digits, best = COLUMNS[field]
    values = sorted((run[field] for run in runs), reverse=best is max)
    return f"{values[0]:.{digits}f} [{values[-1]:.{digits}f}]"


def table(runs, job):
    same = 0
    for a, b in zip(runs["snapkv"][0]["answer"], runs["kvpress"][0]["answer"]):
        if a != b:
            break
        same += 1
    lines = [f"{Path(job['model']).name}, {len(job['ids'])} tokens, {job['budget']} rows kept, "
             f"{job['threads']} threads; best [worst] of {len(runs['snapkv'])}, in turns; the first "
             f"{same} of {N_DECODED} tokens agree", "",
             "| | " + " | ".join(heading for heading, _, _ in COLUMNS.values()) + " |",
             "|---" * (1 + len(COLUMNS)) + "|"]
    for engine, own in runs.items():
        lines.append(f"| {engine} | " + " | ".join(cell(own, field) for field in COLUMNS) + " |")
    for engine in list(ENGINES)[:-1]:
        ratios = [best(r[field] for r in runs["kvpress"]) / best(r[field] for r in runs[engine])
                  for field, (_, _, best) in COLUMNS.items()]
        lines.append(f"| kvpress / {engine} | " + " | ".join(f"{x:.2f}" for x in ratios) + " |")
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--length", type=int, default=4000, help="tokens of the prompt")
    parser.add_argument("--budget", type=int, default=512, help="rows kept per layer and KV head")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    job = {"model": os.path.abspath(given.model), "budget": given.budget, "threads": given.threads,
           "ids": prompt_ids(given.model, given.length)}
    runs = {engine: [] for engine in ENGINES}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(job, file)
        file.flush()
        for _ in range(given.rounds):
            for engine, own in runs.items():
                own.append(measure(engine, file.name))
                print(engine, {k: v for k, v in own[-1].items() if k != "answer"}, file=sys.stderr)
    print(table(runs, job))
    return None


if __name__ == "__main__":
    main()
