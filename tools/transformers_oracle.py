#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what transformers computes for a GGUF model, where llama.cpp is no oracle: as llama_oracle.py's goldens.

    snapkv-test-model phi3-window phi3-window.gguf
    transformers_oracle.py phi3-window.gguf tests/engine/golden/phi3-window.json

llama.cpp does not apply Phi 3's sliding window; transformers does. Of Phi's mixtures llama.cpp computes RMS norms for layer
norms, and the softmax of two experts for the sparse mixer. Llama 4's chunks of attention have 8192 tokens there, and queries
grow from the 8192nd token on, whatever the file says. It takes SiLU for BitNet's activation even where the file names the
squared ReLU, with which BitNet b1.58 2B was trained. Of GroveMoE's adjugate experts it takes other weights, and lets them read
what the experts have computed; here both read the same, as their authors have it. Where Chameleon's norms come after the
blocks (34B), its feed-forward networks read what attention gives without the residual stream. Needs torch, transformers and
numpy.
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]
from gguf import read_gguf  # noqa: E402
from llama_oracle import N_GREEDY, N_PROMPTS, N_TEACHER, first_text_id, generated_ids  # noqa: E402

FIRST_ID = 259  # as in llama_oracle.py: whole words only


def phi3(path):
    """Loads a file of architecture `phi3` as a model in f32."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["phi3." + key]
    n_layer = get("block_count")
    config = transformers.Phi3Config(
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
    model = transformers.Phi3ForCausalLM(config).float().eval()
    model.load_state_dict({f"{ours}.weight": torch.from_numpy(tensors[f"{theirs}.weight"].copy()) for ours, theirs in names.items()})
    return model


def phimoe(path):
    """Loads a file of architecture `phimoe`, with the factors of long contexts."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["phimoe." + key]
    n_layer, n_ctx = get("block_count"), get("rope.scaling.original_context_length")
    factors = tensors["rope_factors_long.weight"].tolist()
    rope = dict(rope_type="longrope", rope_theta=get("rope.freq_base"), original_max_position_embeddings=n_ctx,
                short_factor=factors, long_factor=factors, short_mscale=get("rope.scaling.attn_factor"),
                long_mscale=get("rope.scaling.attn_factor"))
    config = transformers.PhimoeConfig(
        vocab_size=len(tensors["token_embd.weight"]), hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"),
        num_hidden_layers=n_layer, num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), max_position_embeddings=get("context_length"),
        original_max_position_embeddings=n_ctx, rms_norm_eps=get("attention.layer_norm_rms_epsilon"), rope_parameters=rope,
        num_local_experts=get("expert_count"), num_experts_per_tok=get("expert_used_count"), attention_bias=True, lm_head_bias=True,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, attn_implementation="eager")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    weights = {}
    for il in range(n_layer):
        layer, blk = f"model.layers.{il}.", f"blk.{il}."
        names |= {layer + f"self_attn.{x}_proj": blk + f"attn_{x}" for x in "qkv"}
        names |= {layer + "self_attn.o_proj": blk + "attn_output", layer + "mlp.router": blk + "ffn_gate_inp",
                  layer + "input_layernorm": blk + "attn_norm", layer + "post_attention_layernorm": blk + "ffn_norm"}
        gate, up, down = (tensors[f"{blk}ffn_{x}_exps.weight"] for x in ("gate", "up", "down"))
        weights |= {layer + "mlp.experts.gate_up_proj": np.concatenate([gate, up], axis=1), layer + "mlp.experts.down_proj": down}
    for ours, theirs in names.items():
        for end in (".weight", ".bias"):
            if theirs + end in tensors:
                weights[ours + end] = tensors[theirs + end]
    model = transformers.PhimoeForCausalLM(config).float().eval()
    model.load_state_dict({name: torch.from_numpy(x.copy()) for name, x in weights.items()})
    return model


def llama4(path):
    """Loads a file of architecture `llama4`, whose factors of rotation become those of every head."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["llama4." + key]
    n_layer, step = get("block_count"), get("interleave_moe_layer_step")
    config = transformers.Llama4TextConfig(
        vocab_size=len(tensors["token_embd.weight"]), hidden_size=get("embedding_length"),
        intermediate_size=get("expert_feed_forward_length"), intermediate_size_mlp=get("feed_forward_length"),
        num_hidden_layers=n_layer, num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), head_dim=get("attention.key_length"),
        max_position_embeddings=get("context_length"), rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
        num_local_experts=get("expert_count"), num_experts_per_tok=get("expert_used_count"), interleave_moe_layer_step=step,
        attention_chunk_size=get("attention.sliding_window"), attn_scale=get("attention.temperature_scale"),
        floor_scale=get("attention.temperature_length"), rope_parameters=dict(rope_type="default", rope_theta=get("rope.freq_base")),
        pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, attn_implementation="eager")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    weights = {}
    for il in range(n_layer):
        layer, blk = f"model.layers.{il}.", f"blk.{il}."
        names |= {layer + f"self_attn.{x}_proj": blk + f"attn_{x}" for x in "qkv"}
        names |= {layer + "self_attn.o_proj": blk + "attn_output", layer + "input_layernorm": blk + "attn_norm",
                  layer + "post_attention_layernorm": blk + "ffn_norm"}
        is_dense = (il + 1) % step != 0
        one, end = (layer + "feed_forward.", "") if is_dense else (layer + "feed_forward.shared_expert.", "_shexp")
        names |= {one + f"{x}_proj": blk + f"ffn_{x}{end}" for x in ("gate", "up", "down")}
        if is_dense:
            continue
        names[layer + "feed_forward.router"] = blk + "ffn_gate_inp"
        gate, up, down = (tensors[f"{blk}ffn_{x}_exps.weight"].swapaxes(1, 2) for x in ("gate", "up", "down"))
        experts = layer + "feed_forward.experts."
        weights |= {experts + "gate_up_proj": np.concatenate([gate, up], axis=2), experts + "down_proj": down}
    weights |= {f"{ours}.weight": tensors[f"{theirs}.weight"] for ours, theirs in names.items()}
    model = transformers.Llama4ForCausalLM(config).float().eval()
    model.load_state_dict({name: torch.from_numpy(x.copy()) for name, x in weights.items()})
    model.model.rotary_emb.inv_freq /= torch.from_numpy(tensors["rope_freqs.weight"].copy())
    return model


def bitnet(path):
    """Loads a file of architecture `bitnet`, with the activation that it names."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["bitnet." + key]
    n_layer = get("block_count")
    config = transformers.BitNetConfig(
        vocab_size=len(tensors["token_embd.weight"]), hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"),
        num_hidden_layers=n_layer, num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), max_position_embeddings=get("context_length"),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"), hidden_act=get("hidden_activation"),
        rope_parameters=dict(rope_type="default", rope_theta=get("rope.freq_base")),
        pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, attn_implementation="eager")
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "token_embd"}
    for il in range(n_layer):
        layer, blk = f"model.layers.{il}.", f"blk.{il}."
        names |= {layer + f"self_attn.{x}_proj": blk + f"attn_{x}" for x in "qkv"}
        names |= {layer + f"mlp.{x}_proj": blk + f"ffn_{x}" for x in ("gate", "up", "down")}
        names |= {layer + "self_attn.o_proj": blk + "attn_output", layer + "self_attn.attn_sub_norm": blk + "attn_sub_norm",
                  layer + "mlp.ffn_sub_norm": blk + "ffn_sub_norm", layer + "input_layernorm": blk + "attn_norm",
                  layer + "post_attention_layernorm": blk + "ffn_norm"}
    model = transformers.BitNetForCausalLM(config).float().eval()
    model.load_state_dict({f"{ours}.weight": torch.from_numpy(tensors[f"{theirs}.weight"].copy()) for ours, theirs in names.items()})
    return model


class GroveExperts(torch.nn.Module):
    """Experts with adjugates (arXiv 2508.07785): of a token's experts each has a weight, and so has the smaller expert of its group."""

    def __init__(self, tensors, blk, n_used, n_group, factor):
        super().__init__()
        get = lambda name: torch.from_numpy(tensors[f"{blk}{name}.weight"].copy())
        self.router, self.n_used, self.n_group, self.factor = get("ffn_gate_inp"), n_used, n_group, factor
        self.large, self.small = ([get(f"ffn_{x}_{end}") for x in ("gate", "up", "down")] for end in ("exps", "chexps"))

    @staticmethod
    def one(matrices, e, x):
        gate, up, down = (m[e] for m in matrices)
        return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    def forward(self, hidden):
        x = hidden.reshape(-1, hidden.shape[-1])
        weights, chosen = torch.topk(torch.softmax(x @ self.router.T, dim=-1), self.n_used)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        for t in range(len(x)):
            for w, e in zip(weights[t], chosen[t].tolist()):
                small = self.one(self.small, e // self.n_group, x[t])
                out[t] += w * (self.one(self.large, e, x[t]) + self.factor * small)
        return out.reshape(hidden.shape)


def grovemoe(path):
    """Loads a file of architecture `grovemoe`: Qwen 3's mixture with other experts."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["grovemoe." + key]
    n_layer = get("block_count")
    config = transformers.Qwen3Config(
        vocab_size=len(tensors["token_embd.weight"]), hidden_size=get("embedding_length"),
        intermediate_size=get("feed_forward_length"), num_hidden_layers=n_layer, num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), head_dim=get("attention.key_length"),
        max_position_embeddings=get("context_length"), rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
        rope_parameters=dict(rope_type="default", rope_theta=get("rope.freq_base")), pad_token_id=0, bos_token_id=1,
        eos_token_id=2, tie_word_embeddings=False, attn_implementation="eager")
    model = transformers.Qwen3ForCausalLM(config).float().eval()
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for il, one in enumerate(model.model.layers):
        layer, blk = f"model.layers.{il}.", f"blk.{il}."
        names |= {layer + f"self_attn.{x}_proj": blk + f"attn_{x}" for x in "qkv"}
        names |= {layer + f"self_attn.{x}_norm": blk + f"attn_{x}_norm" for x in "qk"}
        names |= {layer + "self_attn.o_proj": blk + "attn_output", layer + "input_layernorm": blk + "attn_norm",
                  layer + "post_attention_layernorm": blk + "ffn_norm"}
        one.mlp = GroveExperts(tensors, blk, get("expert_used_count"), get("experts_per_group"), get("expert_group_scale"))
    model.load_state_dict({f"{ours}.weight": torch.from_numpy(tensors[f"{theirs}.weight"].copy()) for ours, theirs in names.items()})
    return model


def chameleon(path):
    """Loads a file of architecture `chameleon`, whose heads rotate neighbouring values; transformers' rotate halves."""
    metadata, tensors = read_gguf(path)
    get = lambda key: metadata["chameleon." + key]
    n_layer, n_vocab = get("block_count"), len(tensors["token_embd.weight"])
    pictures = {f"IMGIMG{i}": i for i in range(4, 8196)}
    config = transformers.ChameleonConfig(
        vocab_size=n_vocab, hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"),
        num_hidden_layers=n_layer, num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), max_position_embeddings=get("context_length"),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"), swin_norm=get("swin_norm"),
        vocabulary_map={"<image>": 8200} | pictures, rope_parameters=dict(rope_type="default", rope_theta=get("rope.freq_base")),
        vq_config=dict(base_channels=32, channel_multiplier=[1], num_res_blocks=1, embed_dim=8, num_embeddings=8, latent_channels=8),
        pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False, attn_implementation="eager")
    model = transformers.ChameleonForConditionalGeneration(config).float().eval()
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for il in range(n_layer):
        layer, blk = f"model.layers.{il}.", f"blk.{il}."
        names |= {layer + f"self_attn.{x}_proj": blk + f"attn_{x}" for x in "qkv"}
        names |= {layer + f"self_attn.{x}_norm": blk + f"attn_{x}_norm" for x in "qk"}
        names |= {layer + f"mlp.{x}_proj": blk + f"ffn_{x}" for x in ("gate", "up", "down")}
        names |= {layer + "self_attn.o_proj": blk + "attn_output", layer + "input_layernorm": blk + "attn_norm",
                  layer + "post_attention_layernorm": blk + "ffn_norm"}
    weights = {}
    for ours, theirs in names.items():
        for end in (".weight", ".bias"):
            if theirs + end not in tensors:
                continue
            x = tensors[theirs + end]
            if "attn_q" in theirs or "attn_k" in theirs:  # [n_head * d, n_embd], or of norms [n_head, d]
                d, rest = get("attention.key_length"), 1 if "norm" in theirs else x.shape[1]
                x = x.reshape(-1, d // 2, 2, rest).swapaxes(1, 2).reshape(x.shape)
            weights[ours + end] = torch.from_numpy(x.copy())
    missing, unknown = model.load_state_dict(weights, strict=False)
    assert not unknown and all(".vqmodel." in name for name in missing), (missing, unknown)
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
    architecture = read_gguf(path)[0]["general.architecture"]
    model = {"phi3": phi3, "phimoe": phimoe, "llama4": llama4, "bitnet": bitnet, "grovemoe": grovemoe, "chameleon": chameleon}[architecture](path)
    n_vocab = model.config.vocab_size
    first = first_text_id(name)
    prompts = [[1] + generated_ids(20 + 13 * i, n_vocab, 100 + i, first) for i in range(N_PROMPTS)]
    golden = {
        "command": f"tools/transformers_oracle.py {name} tests/engine/golden/{Path(out).name}",
        "made_by": f"snapkv-test-model {Path(path).stem} {name}",
        "kv": "f32",
        "teacher": teacher(model, [1] + generated_ids(N_TEACHER + 16, n_vocab, 7, first)),
        "greedy": [greedy(model, p) for p in prompts],
    }
    with open(out, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
