#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what transformers computes for a GGUF model, where llama.cpp is no oracle: as llama_oracle.py's goldens.

    snapkv-test-model phi3-window phi3-window.gguf
    transformers_oracle.py phi3-window.gguf tests/engine/golden/phi3-window.json

llama.cpp does not apply Phi 3's sliding window; transformers does. Needs torch, transformers and numpy.
"""
import json
import sys
from pathlib import Path

import torch
from transformers import Phi3Config, Phi3ForCausalLM

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]
from gguf import read_gguf  # noqa: E402
from llama_oracle import N_GREEDY, N_PROMPTS, N_TEACHER, generated_ids  # noqa: E402

FIRST_ID = 259  # as in llama_oracle.py: whole words only


def phi3(path):
    """Loads a file of architecture `phi3` as a model in f32."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["phi3." + key]
    n_layer = get("block_count")
    config = Phi3Config(
        vocab_size=len(tensors["token_embd.weight"]), hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"),
        num_hidden_layers=n_layer, num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), max_position_embeddings=get("context_length"),
        original_max_position_embeddings=get("context_length"), rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
        sliding_window=get("attention.sliding_window"), pad_token_id=0, bos_token_id=1, eos_token_id=2,
        tie_word_embeddings=False, attn_implementation="eager")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for il in range(n_layer):
        layer, blk = f"model.layers.{il}.", f"blk.{il}."
        names |= {layer + "self_attn.qkv_proj": blk + "attn_qkv", layer + "self_attn.o_proj": blk + "attn_output",
                  layer + "mlp.gate_up_proj": blk + "ffn_up", layer + "mlp.down_proj": blk + "ffn_down",
                  layer + "input_layernorm": blk + "attn_norm", layer + "post_attention_layernorm": blk + "ffn_norm"}
    model = Phi3ForCausalLM(config).float().eval()
    model.load_state_dict({f"{ours}.weight": torch.from_numpy(tensors[f"{theirs}.weight"].copy()) for ours, theirs in names.items()})
    return model


@torch.no_grad()
def log_probabilities(model, ids):
    """Log-probabilities [len(ids), n_vocab], in f64."""
    return torch.log_softmax(model(torch.tensor([ids]), use_cache=False).logits[0].double(), dim=-1)


def teacher(model, ids):
    out = {"ids": ids, "next_logprob": [], "best": [], "best_logprob": [], "second_logprob": []}
    rows = log_probabilities(model, ids)
    for i in range(len(ids) - 1 - N_TEACHER, len(ids) - 1):
        top = torch.topk(rows[i], 2)
        out["next_logprob"].append(round(rows[i][ids[i + 1]].item(), 6))
        out["best"].append(top.indices[0].item())
        out["best_logprob"].append(round(top.values[0].item(), 6))
        out["second_logprob"].append(round(top.values[1].item(), 6))
    return out


def greedy(model, prompt):
    ids, margins = list(prompt), []
    for _ in range(N_GREEDY):
        top = torch.topk(log_probabilities(model, ids)[-1][FIRST_ID:], 2)
        ids.append(FIRST_ID + top.indices[0].item())
        margins.append(round((top.values[0] - top.values[1]).item(), 6))
    return {"prompt": prompt, "tokens": ids[len(prompt):], "margin": margins, "first_id": FIRST_ID}


def main():
    path, out = sys.argv[1:]
    name = Path(path).name
    model = phi3(path)
    n_vocab = model.config.vocab_size
    prompts = [[1] + generated_ids(20 + 13 * i, n_vocab, 100 + i) for i in range(N_PROMPTS)]
    golden = {
        "command": f"tools/transformers_oracle.py {name} tests/engine/golden/{Path(out).name}",
        "made_by": f"snapkv-test-model {Path(path).stem} {name}",
        "kv": "f32",
        "teacher": teacher(model, [1] + generated_ids(N_TEACHER + 16, n_vocab, 7)),
        "greedy": [greedy(model, p) for p in prompts],
    }
    with open(out, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
