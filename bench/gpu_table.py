#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the table that bench/gpu.sh measured: what is asked, what was reached.

    gpu_table.py table FOLDER
    gpu_table.py batch FOLDER BYTES     longest prompts of two sequences in BYTES beside the weights
"""
import json
import os
import sys


def records(folder, name):
    path = os.path.join(folder, name + ".jsonl")
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return json.loads(f.read().splitlines()[-1] if name != "plan.json" else f.read())


def find(rows, **wanted):
    found = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
    return found[0] if found else None


def row(what, asked, reached):
    print(f"| {what} | {asked} | {reached} |")


def table(folder):
    machine, peer = read(folder, "machine.json"), read(folder, "peer.json")
    print("| what | asked | reached |\n|---|---|---|")
    deep = records(folder, "decode-16k")
    ours = find(deep, kv_policy="snapkv", n_seq=2)
    full = find(deep, kv_policy="full", n_seq=2)
    if ours and full:
        row("decode after 16384 tokens, batch 2, budget 2048, against our full cache", "3.6x",
            f"{ours['avg_ts'] / full['avg_ts']:.2f}x ({ours['avg_ts']:.0f} and "
            f"{full['avg_ts']:.0f} tok/s)")
    if ours and peer:
        row("the same against transformers + SnapKVPress, per token", "2x",
            f"{peer['snapkv']['step_s'] * ours['avg_ts'] / 2:.2f}x")
    short = find(records(folder, "decode-short"), kv_policy="full")
    if short and machine:
        row("decode bandwidth, batch 1, bf16 weights, of the copy's", "85%",
            f"{100 * short['gbps'] / machine['copy_gbps']:.0f}% ({short['gbps']:.0f} GB/s)")
    prefill = find(records(folder, "prefill"), n_prompt=32768)
    if prefill and machine:
        row("prefill of 32768 tokens, 8b-gqa, of the product rate", "55%",
            f"{100 * prefill['gflops'] / 1e3 / machine['bf16_tflops']:.0f}% "
            f"({prefill['avg_ts']:.0f} tok/s)")
    selected = find(records(folder, "prefill-128k"), n_prompt=131072)
    if selected:
        row("score + select + gather, 131072 tokens", "2%", f"{selected['select_percent']:.2f}%")
    flat = records(folder, "flat")
    if flat:
        rates = [r["avg_ts"] for r in flat]
        row(f"decode, {flat[0]['n_depth']} to {flat[-1]['n_depth']} tokens", "within 3%",
            f"{100 * (max(rates) / min(rates) - 1):.1f}% apart")
    longest = find(records(folder, "longest"), n_prompt=1048576)
    if longest:
        gb = longest["peak_device_mib"] * 2**20 / 1e9
        models = [os.path.join(folder, f"7b-mha-{name}.gguf") for name in ("bf16", "8-layers")]
        if all(map(os.path.exists, models)):  # the other 24 layers: weights, and three times the kept rows
            whole, part = map(os.path.getsize, models)
            total = gb + (whole - part) / 1e9 + 3 * longest["kv_mib"] * 2**20 / 1e9
            row("device memory for 1048576 tokens, 7b-mha, batch 1", "80 GB",
                f"{total:.1f} GB ({gb:.1f} measured with 8 layers)")


def batch(folder, beside_weights):
    """From the plan of one sequence of n tokens; a plan is linear in n but for its constants."""
    plan = read(folder, "plan.json")
    memory = plan["memory"]
    n, kept, full = memory["n_tokens"], memory["policy"], memory["full"]
    fixed = kept["packed_weights"] + kept["activations"] + 2 * kept["kv_kept"]
    theirs = (beside_weights - full["packed_weights"] - full["activations"]) * n / (
        2 * full["kv_kept"] + full["hidden_states"])
    print(f"two sequences in {beside_weights / 1e9:.1f} GB beside the weights, by the plan: "
          f"{theirs:.0f} tokens each with the full cache (asked: 8.2 times that)")
    for where, hidden in (("on the device", kept["hidden_states"]), ("in host memory", 0)):
        ours = (beside_weights - fixed) * n / (hidden + kept["kv_scratch"])
        print(f"  compressed, hidden states {where}: {ours:.0f}, {ours / theirs:.1f}x")


def main():
    if len(sys.argv) >= 3 and sys.argv[1] == "table":
        return table(sys.argv[2])
    if len(sys.argv) == 4 and sys.argv[1] == "batch":
        return batch(sys.argv[2], int(sys.argv[3]))
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
