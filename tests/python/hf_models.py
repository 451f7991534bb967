# SPDX-License-Identifier: MIT
"""Small random models of transformers and prompts for them."""

import torch
import transformers

N, WINDOW, KERNEL, BUDGET = 200, 16, 7, 64
_SMALL = dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
              num_attention_heads=4, num_key_value_heads=2, head_dim=16)


def make(kind):
    """A causal model of a family, as "Llama"; the same one in every call."""
    torch.manual_seed(7)
    extra = {}
    if kind == "Gemma3Text":
        extra = dict(sliding_window=32, layer_types=["sliding_attention", "full_attention",
                                                     "full_attention"])
    if kind == "Phi3":
        extra = dict(pad_token_id=0)
    config = getattr(transformers, f"{kind}Config")(**_SMALL, **extra)
    name = "Gemma3" if kind == "Gemma3Text" else kind
    return getattr(transformers, f"{name}ForCausalLM")(config).eval()


def ids(n=N, seed=1):
    """Token ids [1, n]."""
    torch.manual_seed(seed)
    return torch.randint(1, 300, (1, n))
