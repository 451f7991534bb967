#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""transformers: a cache that compresses itself, dropped into generate().

    examples/transformers_cache.py [MODEL]      # a name of the Hub or a folder

Without a model it takes a small one with random weights, which shows the sizes.
"""

import sys

import torch
import transformers

import snapkv.hf


def load():
    """(model, token ids [1, n_tokens])"""
    if len(sys.argv) > 1:
        tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
        text = "The grass is green and the sky is blue. " * 200 + "The sky is"
        return (transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1]),
                tokenizer(text, return_tensors="pt").input_ids)
    config = transformers.LlamaConfig(
        vocab_size=500, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=2, pad_token_id=0)
    return transformers.LlamaForCausalLM(config), torch.randint(3, 500, (1, 1500))


def main():
    model, ids = load()
    caches = {"full": transformers.DynamicCache(config=model.config),
              "SnapKV": snapkv.hf.SnapKVCache(model, budget=256)}
    for name, cache in caches.items():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), past_key_values=cache,
                             max_new_tokens=10, do_sample=False)
        size = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
        print(f"{name}: {ids.shape[1]} tokens read, {size / 2**20:.2f} MiB of cache, then "
              f"{out[0, ids.shape[1]:].tolist()}")


if __name__ == "__main__":
    main()
