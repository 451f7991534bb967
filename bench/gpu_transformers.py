#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hugging Face transformers with kvpress' SnapKVPress on the shape 7b-mha (random weights, bf16):
seconds to the first token of 16384 random tokens and tokens per second afterwards, batch 2, the
cache compressed to 2048 rows, and the same with the full cache. KVPRESS names a folder that holds
the package. One line of JSON."""
import contextlib
import json
import os
import sys
import time

import torch
import transformers

N_PROMPT, N_GEN, BUDGET, BATCH = 16384, 64, 2048, 2


def make_model():
    config = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=32, vocab_size=32000, max_position_embeddings=1 << 20, rope_theta=5e7)
    config._attn_implementation = "sdpa"
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return transformers.LlamaForCausalLM(config).eval()


def run(model, press):
    tokens = torch.randint(3, 32000, (BATCH, N_PROMPT), device="cuda")
    cache = transformers.DynamicCache()
    torch.cuda.synchronize()
    begin = time.time()
    with torch.no_grad(), press(model) if press else contextlib.nullcontext():
        out = model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        torch.cuda.synchronize()
        prefill = time.time() - begin
    position = torch.tensor([[N_PROMPT]] * BATCH, device="cuda")
    next_token = out.logits[:, -1:].argmax(-1)
    with torch.no_grad():
        for i in range(N_GEN + 4):
            if i == 4:  # the first few steps set up memory
                torch.cuda.synchronize()
                begin = time.time()
            out = model(next_token, past_key_values=cache, use_cache=True,
                        position_ids=position + i)
            next_token = out.logits[:, -1:].argmax(-1)
        torch.cuda.synchronize()
    return {"prefill_s": prefill, "step_s": (time.time() - begin) / N_GEN,
            "rows": cache.get_seq_length()}


def main():
    if os.environ.get("KVPRESS"):
        sys.path.insert(0, os.environ["KVPRESS"])
    from kvpress import SnapKVPress
    model = make_model()
    ratio = 1 - BUDGET / N_PROMPT
    press = SnapKVPress(compression_ratio=ratio, window_size=32, kernel_size=7)
    result = {"transformers": transformers.__version__, "torch": torch.__version__}
    for name, p in (("snapkv", press), ("full", None)):
        runs = [run(model, p) for _ in range(2)]
        result[name] = min(runs, key=lambda r: r["step_s"])
        result[name]["prefill_s"] = min(r["prefill_s"] for r in runs)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
