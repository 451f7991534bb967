#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Record what Hugging Face's transformers computes for small random models, as goldens for
tests/huggingface/hf_oracle_test.cpp.

    hf_oracle.py CASE --out GOLDEN.json [--folder DIR]
    hf_oracle.py --list

Makes the model of CASE with weights that are a function of tensor name and index, saves it with
save_pretrained, loads it again, and writes JSON: the configuration as it was saved, names, shapes
and type of the tensors, 81 token ids, and for the last 64 of them the log-probability that the
model gave to the token, its favourite and its and the runner-up's log-probability. The test makes
the same folder from that. DIR keeps the folder that was saved. Needs torch and transformers, and accelerate for
MXFP4.
"""
import argparse
import json
import pathlib
import tempfile

import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

N_TEACHER = 64
SEED = 1
SIZES = dict(
    vocab_size=320, hidden_size=64, intermediate_size=160, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def case(config_class, dtype="float32", max_shard_size="5GB", model_class="AutoModelForCausalLM", mxfp4=False,
         **config):
    return dict(config_class=config_class, model_class=model_class, dtype=dtype, max_shard_size=max_shard_size, mxfp4=mxfp4,
                config={**SIZES, **config})


def rope(**parameters):
    return dict(rope_theta=10000.0, rope_parameters=dict(rope_theta=10000.0, **parameters))


# Qwen 3.5 and Qwen3-Next: linear attention in all layers but every fourth, or but those named
DELTA_NET = dict(
    head_dim=32, linear_conv_kernel_dim=4, linear_key_head_dim=32, linear_value_head_dim=32, linear_num_key_heads=2,
    linear_num_value_heads=6, rms_norm_eps=1e-6,
    rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25))
MROPE = dict(DELTA_NET["rope_parameters"], mrope_section=[2, 1, 1], mrope_interleaved=True)
GEMMA4 = dict(num_hidden_layers=6, head_dim=32, global_head_dim=64, sliding_window=16,
              layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 2)
EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=64)
GLM4_MOE = dict(n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=64, n_shared_experts=1,
                first_k_dense_replace=1, routed_scaling_factor=1.5, norm_topk_prob=True)
LFM2 = dict(layer_types=["conv", "full_attention", "conv", "full_attention"], norm_eps=1e-5, conv_L_cache=3)
GRANITE_HYBRID = dict(
    layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"], mamba_n_heads=8,
    mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4, shared_intermediate_size=96, attention_multiplier=0.4,
    embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0)
# transformers' scan of a prompt raises steps to the least one that training begins with; that of one token does not
NEMOTRON_H = dict(head_dim=32, mamba_num_heads=8, mamba_head_dim=16, n_groups=2, ssm_state_size=16, conv_kernel=4,
                  time_step_min=1e-20, intermediate_size=96)
FALCON_H1 = dict(
    mamba_d_ssm=96, mamba_n_heads=6, mamba_n_groups=1, mamba_d_state=16, mamba_d_conv=4, embedding_multiplier=2.5,
    lm_head_multiplier=1.5, mlp_multipliers=[0.88, 0.6], key_multiplier=1.6, attention_out_multiplier=0.9,
    attention_in_multiplier=1.3, ssm_multipliers=[0.4, 0.7, 1.4, 0.8, 1.2], ssm_in_multiplier=1.25, ssm_out_multiplier=0.7)
JAMBA = dict(attn_layer_period=4, attn_layer_offset=1, mamba_d_state=16, mamba_d_conv=4, rms_norm_eps=1e-6)
MAMBA = dict(state_size=16, conv_kernel=4, layer_norm_epsilon=1e-5, intermediate_size=128)
KIMI_LINEAR = dict(
    num_key_value_heads=4, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=16, v_head_dim=40, linear_head_dim=32,
    linear_num_heads=4, num_local_experts=6, num_experts_per_tok=2, moe_intermediate_size=64, routed_scaling_factor=1.5)
LLAMA4 = dict(head_dim=32, intermediate_size=96, intermediate_size_mlp=160, num_hidden_layers=6, num_local_experts=6)
PHI_MOE_ROPE = dict(
    rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=256, short_mscale=1.3, long_mscale=1.5,
    short_factor=[1.0 + 0.05 * i for i in range(8)], long_factor=[1.0 + 0.5 * i for i in range(8)])
GPT_OSS = dict(intermediate_size=96, head_dim=32, sliding_window=16, num_local_experts=5, num_experts_per_tok=2)

CHAMELEON_TOKENS = {"<image>": 68, **{f"IMGIMG{i}": 4 + i for i in range(64)}}
CHAMELEON_PICTURES = dict(base_channels=32, channel_multiplier=[1], num_res_blocks=1, embed_dim=8, num_embeddings=64,
                          latent_channels=8, resolution=16)

CASES = {
    "llama": case("LlamaConfig"),
    "llama-bf16": case("LlamaConfig", dtype="bfloat16", max_shard_size="200KB"),
    "llama-f16": case("LlamaConfig", dtype="float16", tie_word_embeddings=True),
    "llama-options": case("LlamaConfig", attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                          num_key_value_heads=4, head_dim=32, max_shard_size="300KB"),
    "llama3": case("LlamaConfig", **rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                         high_freq_factor=4.0, original_max_position_embeddings=64)),
    "llama-linear": case("LlamaConfig", **rope(rope_type="linear", factor=4.0)),
    "llama-yarn": case("LlamaConfig", **rope(rope_type="yarn", factor=4.0, beta_fast=16.0,
                                             original_max_position_embeddings=64)),
    "mistral": case("MistralConfig", head_dim=32, sliding_window=None, rope_theta=1000000.0),
    "mistral-window": case("MistralConfig", sliding_window=24),
    "qwen2-window": case("Qwen2Config", use_sliding_window=True, sliding_window=24, max_window_layers=2),
    "qwen2": case("Qwen2Config", tie_word_embeddings=True),
    "qwen3": case("Qwen3Config", head_dim=32, tie_word_embeddings=True),
    "mixtral": case("MixtralConfig", num_local_experts=4, num_experts_per_tok=2, intermediate_size=96),
    "mixtral-bf16": case("MixtralConfig", dtype="bfloat16", num_local_experts=8, num_experts_per_tok=3,
                         intermediate_size=64, max_shard_size="300KB"),
    "qwen3moe": case("Qwen3MoeConfig", head_dim=32, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=64,
                     norm_topk_prob=True),
    "qwen3moe-softmax": case("Qwen3MoeConfig", head_dim=32, num_experts=5, num_experts_per_tok=3,
                             moe_intermediate_size=96, norm_topk_prob=False),
    "gemma3": case("Gemma3TextConfig", num_hidden_layers=7, head_dim=32, sliding_window=16,
                   query_pre_attn_scalar=32, num_attention_heads=4, num_key_value_heads=1),
    "gemma3-options": case(
        "Gemma3TextConfig", num_hidden_layers=6, head_dim=32, sliding_window=24,
        query_pre_attn_scalar=32, final_logit_softcapping=3.0,
        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1000000.0),
                             sliding_attention=dict(rope_type="default", rope_theta=5000.0))),
    "gemma3n": case("Gemma3nTextConfig", num_hidden_layers=10, head_dim=32, sliding_window=16, num_kv_shared_layers=5,
                    hidden_size_per_layer_input=32, vocab_size_per_layer_input=320, laurel_rank=16, altup_num_inputs=3,
                    activation_sparsity_pattern=[0.95, 0.7, 0.5] + [0.0] * 7),
    "gemma4-e": case("Gemma4TextConfig", **GEMMA4, num_kv_shared_layers=3, use_double_wide_mlp=True,
                     hidden_size_per_layer_input=32, vocab_size_per_layer_input=320),
    "gemma4": case("Gemma4TextConfig", dtype="bfloat16", max_shard_size="300KB", **GEMMA4, attention_k_eq_v=True,
                   num_global_key_value_heads=1, hidden_size_per_layer_input=0, final_logit_softcapping=3.0),
    "gemma4-moe": case("Gemma4TextConfig", **GEMMA4, attention_k_eq_v=True, num_global_key_value_heads=1,
                       hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=6, top_k_experts=2,
                       moe_intermediate_size=64),
    "gemma4-picture": case(
        "Gemma4Config", model_class="Gemma4ForConditionalGeneration",
        text_config={**SIZES, **GEMMA4, "hidden_size_per_layer_input": 0},
        vision_config=dict(num_hidden_layers=1, hidden_size=32, intermediate_size=32, num_attention_heads=2,
                           num_key_value_heads=2, head_dim=16, position_embedding_size=16)),
    "phi3": case("Phi3Config", sliding_window=None, original_max_position_embeddings=256),
    "phi3-partial": case("Phi3Config", sliding_window=None, hidden_size=128,
                         original_max_position_embeddings=256,
                         rope_parameters=dict(rope_type="default", rope_theta=10000.0,
                                              partial_rotary_factor=0.75)),
    "phi3-longrope": case("Phi3Config", sliding_window=None, original_max_position_embeddings=64,
                          rope_parameters=dict(
                              rope_type="longrope", rope_theta=10000.0,
                              short_factor=[1.0 + 0.05 * i for i in range(8)],
                              long_factor=[1.0 + 0.5 * i for i in range(8)])),
    # with few experts and much noise, several logits are near the highest
    # prompts of 81 tokens are several chunks of 16, and queries grow three times
    "llama4": case("Llama4TextConfig", model_class="Llama4ForCausalLM", **LLAMA4, attention_chunk_size=16, attn_scale=0.4, floor_scale=20,
                   interleave_moe_layer_step=2, rope_parameters=dict(
                       rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=1.0,
                       original_max_position_embeddings=64)),
    "llama4-plain": case("Llama4TextConfig", model_class="Llama4ForCausalLM", dtype="bfloat16", max_shard_size="300KB", **LLAMA4,
                         use_qk_norm=False, attn_temperature_tuning=False, tie_word_embeddings=True),
    "llama4-picture": case(
        "Llama4Config", model_class="Llama4ForConditionalGeneration",
        text_config={**SIZES, **LLAMA4, "attention_chunk_size": 24},
        vision_config=dict(num_hidden_layers=1, hidden_size=32, intermediate_size=128, num_attention_heads=2, image_size=28,
                           patch_size=14, vision_output_dim=32, projector_input_dim=32, projector_output_dim=32)),
    "kimi_linear": case("KimiLinearConfig", **KIMI_LINEAR, n_shared_experts=2, mlp_layer_types=["dense"] + ["sparse"] * 3,
                        layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"]),
    "kimi_linear-q": case("KimiLinearConfig", dtype="bfloat16", max_shard_size="300KB", **KIMI_LINEAR, q_lora_rank=24,
                          mlp_layer_types=["dense"] * 2 + ["sparse"] * 2, linear_conv_kernel_dim=3,
                          layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"]),
    "phimoe": case("PhimoeConfig", intermediate_size=96, num_local_experts=8, router_jitter_noise=0.1, attention_bias=True,
                   lm_head_bias=True, original_max_position_embeddings=256, rope_parameters=PHI_MOE_ROPE),
    "phimoe-long": case("PhimoeConfig", dtype="bfloat16", max_shard_size="300KB", intermediate_size=64, num_local_experts=6,
                        sliding_window=24, original_max_position_embeddings=64, rope_parameters={
                            **PHI_MOE_ROPE, "original_max_position_embeddings": 64, "long_mscale": 1.3,
                            # transformers 5.24 takes the short ones for all contexts
                            "short_factor": PHI_MOE_ROPE["long_factor"]}),
    "qwen2moe": case("Qwen2MoeConfig", **EXPERTS, shared_expert_intermediate_size=96),
    "lfm2": case("Lfm2Config", **LFM2, block_auto_adjust_ff_dim=True, block_multiple_of=32),
    "lfm2moe": case("Lfm2MoeConfig", **LFM2, **EXPERTS, num_dense_layers=1, routed_scaling_factor=1.5),
    "qwen35": case("Qwen3_5TextConfig", **{**DELTA_NET, "rope_parameters": MROPE}, tie_word_embeddings=True),
    "qwen35-bf16": case("Qwen3_5TextConfig", dtype="bfloat16", max_shard_size="300KB", **DELTA_NET,
                        layer_types=["full_attention", "linear_attention", "linear_attention", "full_attention"]),
    "qwen35-picture": case(
        "Qwen3_5Config", model_class="Qwen3_5ForConditionalGeneration",
        text_config={**SIZES, **DELTA_NET, "rope_parameters": MROPE},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64,
                           num_position_embeddings=16)),
    "qwen35moe": case("Qwen3_5MoeTextConfig", **DELTA_NET, **EXPERTS, shared_expert_intermediate_size=96),
    "qwen35moe-picture": case(
        "Qwen3_5MoeConfig", model_class="Qwen3_5MoeForConditionalGeneration",
        text_config={**SIZES, **DELTA_NET, **EXPERTS, "shared_expert_intermediate_size": 96},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64,
                           num_position_embeddings=16)),
    "qwen3next": case("Qwen3NextConfig", **DELTA_NET, **EXPERTS, shared_expert_intermediate_size=96),
    "gpt-oss": case("GptOssConfig", **GPT_OSS, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
        original_max_position_embeddings=32)),
    "gpt-oss-bf16": case("GptOssConfig", dtype="bfloat16", max_shard_size="300KB", **GPT_OSS, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0,
        original_max_position_embeddings=32)),
    "gpt-oss-mxfp4": case("GptOssConfig", dtype="bfloat16", mxfp4=True, **GPT_OSS, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0,
        original_max_position_embeddings=32)),
    "olmo": case("OlmoConfig", clip_qkv=0.8),
    "olmo-plain": case("OlmoConfig", dtype="bfloat16", max_shard_size="300KB", num_key_value_heads=4, tie_word_embeddings=True),
    "jais2": case("Jais2Config", head_dim=32, num_key_value_heads=4),
    "mellum": case("MellumConfig", head_dim=32, num_local_experts=6, num_experts_per_tok=2, moe_intermediate_size=64,
                   norm_topk_prob=True, sliding_window=16, mlp_layer_types=["sparse"] * 4,
                   layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
                   rope_parameters=dict(
                       full_attention=dict(rope_type="yarn", rope_theta=20000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0,
                                           original_max_position_embeddings=32),
                       sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
    "olmoe": case("OlmoeConfig", num_experts=6, num_experts_per_tok=2, intermediate_size=64, num_key_value_heads=4,
                  norm_topk_prob=False),
    "glm4": case("Glm4Config", head_dim=32, attention_bias=True, partial_rotary_factor=0.5),
    "glm4moe": case("Glm4MoeConfig", head_dim=32, attention_bias=True, use_qk_norm=True, **GLM4_MOE),
    "glm4moe-groups": case("Glm4MoeConfig", head_dim=16, num_mtp_layers=0, **{
        **GLM4_MOE, "n_group": 3, "topk_group": 2, "n_shared_experts": 2, "first_k_dense_replace": 2,
        "norm_topk_prob": False}),
    "glm4v_moe": case("Glm4vMoeConfig", model_class="Glm4vMoeForConditionalGeneration", tie_word_embeddings=False, text_config={
        **SIZES, **GLM4_MOE, "head_dim": 32, "rope_parameters": dict(
            rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5, mrope_section=[2, 3, 3])},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64)),
    "solar_open": case("SolarOpenConfig", head_dim=32, **{k: v for k, v in GLM4_MOE.items() if k != "first_k_dense_replace"}),
    "sarvam_moe": case("SarvamMoEConfig", head_dim=32, use_qk_norm=True, **GLM4_MOE),
    "internlm3": case("InternLM3Config", head_dim=32, attention_bias=True, mlp_bias=True, rope_parameters=dict(
        rope_type="dynamic", rope_theta=50000.0, factor=6.0)),
    # pictures' tokens are 4 to 67
    "chameleon": case("ChameleonConfig", model_class="ChameleonForConditionalGeneration", vocabulary_map=CHAMELEON_TOKENS,
                      vq_config=CHAMELEON_PICTURES),
    "chameleon-swin": case("ChameleonConfig", model_class="ChameleonForConditionalGeneration", dtype="bfloat16", swin_norm=True,
                           max_shard_size="300KB", vocabulary_map=CHAMELEON_TOKENS, vq_config=CHAMELEON_PICTURES),
    "seed_oss": case("SeedOssConfig", head_dim=32, attention_bias=True),
    "exaone4": case("Exaone4Config", sliding_window=None, layer_types=["full_attention"] * 4),
    "exaone4-window": case("Exaone4Config", sliding_window=24, sliding_window_pattern="LLLG", layer_types=[
        "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]),
    "ernie4_5": case("Ernie4_5Config", head_dim=32),
    "hunyuan": case("HunYuanDenseV1Config", head_dim=32, rope_parameters=dict(
        rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0)),
    "qwen2vl": case("Qwen2_5_VLConfig", model_class="Qwen2_5_VLForConditionalGeneration", text_config={
        **SIZES, "rope_parameters": dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2])},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64)),
    "qwen3vl": case("Qwen3VLConfig", model_class="Qwen3VLForConditionalGeneration", text_config={
        **SIZES, "head_dim": 32, "rope_parameters": dict(
            rope_type="default", rope_theta=10000.0, mrope_section=[6, 5, 5], mrope_interleaved=True)},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64,
                           num_position_embeddings=16, deepstack_visual_indexes=[0])),
    "granitemoe": case("GraniteMoeConfig", num_local_experts=6, num_experts_per_tok=2, intermediate_size=64,
                       attention_multiplier=0.4, embedding_multiplier=3.0, residual_multiplier=0.5,
                       logits_scaling=2.0),
    "granitemoe-shared": case("GraniteMoeSharedConfig", num_local_experts=6, num_experts_per_tok=2,
                              intermediate_size=64, shared_intermediate_size=96, attention_multiplier=0.4,
                              embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0),
    "granitehybrid": case("GraniteMoeHybridConfig", **GRANITE_HYBRID, num_local_experts=0, tie_word_embeddings=True),
    "granitehybrid-moe": case("GraniteMoeHybridConfig", dtype="bfloat16", max_shard_size="300KB", **{
        **GRANITE_HYBRID, "mamba_n_groups": 1}, num_local_experts=6, num_experts_per_tok=2, intermediate_size=64,
        position_embedding_type="rope"),
    "falcon_h1": case("FalconH1Config", **FALCON_H1),
    "falcon_h1-norm": case("FalconH1Config", dtype="bfloat16", max_shard_size="300KB", **{**FALCON_H1, "mamba_n_groups": 2},
                           mamba_rms_norm=True, mamba_norm_before_gate=False, tie_word_embeddings=True),
    "jamba": case("JambaConfig", **JAMBA, num_experts=1, num_experts_per_tok=1, tie_word_embeddings=True),
    "jamba-moe": case("JambaConfig", dtype="bfloat16", max_shard_size="300KB", **JAMBA, num_experts=6, num_experts_per_tok=2,
                      mamba_dt_rank=24, expert_layer_period=2, expert_layer_offset=1),
    "bamba": case("BambaConfig", attn_layer_indices=[1], mamba_n_heads=8, mamba_n_groups=2, mamba_d_state=16,
                  mamba_d_conv=4),
    "mamba": case("MambaConfig", **MAMBA),
    "falcon_mamba": case("FalconMambaConfig", dtype="bfloat16", max_shard_size="300KB", **MAMBA, time_step_rank=24,
                         mixer_rms_eps=1e-2, tie_word_embeddings=False),
    "mamba2": case("Mamba2Config", **MAMBA, num_heads=8, head_dim=16, n_groups=2),
    "mamba2-tied": case("Mamba2Config", dtype="bfloat16", max_shard_size="300KB", **MAMBA, num_heads=4, head_dim=32, n_groups=1,
                        tie_word_embeddings=True),
    "nemotron_h": case("NemotronHConfig", **NEMOTRON_H, layers_block_type=[
        "linear_attention", "mlp", "linear_attention", "full_attention", "mlp"]),
    "nemotron_h-moe": case("NemotronHConfig", **NEMOTRON_H, layers_block_type=[
        "moe", "linear_attention", "full_attention", "linear_attention", "moe"], n_routed_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=64, moe_shared_expert_intermediate_size=96,
        routed_scaling_factor=1.5),
    "gemma": case("GemmaConfig", head_dim=32),
    "gemma-bf16": case("GemmaConfig", dtype="bfloat16", max_shard_size="300KB", num_key_value_heads=1, hidden_act="gelu"),
    # attention and logits are capped, and prompts of 81 tokens are longer than the windows
    "gemma2": case("Gemma2Config", head_dim=32, query_pre_attn_scalar=32, sliding_window=16, attn_logit_softcapping=2.0,
                   final_logit_softcapping=3.0),
    "smollm3": case("SmolLM3Config", num_hidden_layers=5, tie_word_embeddings=True),
    "granite": case("GraniteConfig", attention_multiplier=0.4, embedding_multiplier=3.0, residual_multiplier=0.5,
                    logits_scaling=2.0, attention_bias=True, mlp_bias=True),
    "olmo2": case("Olmo2Config"),
    "olmo3": case("Olmo3Config", num_hidden_layers=5, sliding_window=16, rope_parameters=dict(
        full_attention=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64),
        sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
    "cohere": case("CohereConfig", logit_scale=0.5),
    "cohere-norm": case("CohereConfig", dtype="bfloat16", max_shard_size="300KB", use_qk_norm=True),
    "cohere2": case("Cohere2Config", num_hidden_layers=5, sliding_window=16, logit_scale=0.5),
    "ministral3": case("Ministral3Config", head_dim=32, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=32, beta_fast=32.0,
        beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5)),
    "mistral3-picture": case(
        "Mistral3Config", model_class="Mistral3ForConditionalGeneration", tie_word_embeddings=False,
        text_config={**SIZES, "model_type": "mistral", "head_dim": 32, "sliding_window": None},
        vision_config=dict(model_type="pixtral", num_hidden_layers=1, hidden_size=32, intermediate_size=32,
                           num_attention_heads=2, head_dim=16, image_size=28, patch_size=14)),
    "ministral3-picture": case(
        "Mistral3Config", model_class="Mistral3ForConditionalGeneration", tie_word_embeddings=True,
        text_config={**SIZES, "model_type": "ministral3", "head_dim": 32, "tie_word_embeddings": True, "rope_parameters": dict(
            rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64, mscale=1.0,
            mscale_all_dim=0.5, llama_4_scaling_beta=0.3)},
        vision_config=dict(model_type="pixtral", num_hidden_layers=1, hidden_size=32, intermediate_size=32,
                           num_attention_heads=2, head_dim=16, image_size=28, patch_size=14)),
    "ministral": case("MinistralConfig", head_dim=16, sliding_window=16, layer_types=["sliding_attention", "full_attention"] * 2),
    "cwm": case("CwmConfig", head_dim=32, sliding_window=16, rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64)),
    "starcoder2": case("Starcoder2Config", sliding_window=24),
    "stablelm": case("StableLmConfig", use_qkv_bias=True),
    "stablelm-parallel": case("StableLmConfig", dtype="bfloat16", max_shard_size="300KB", use_parallel_residual=True,
                              qk_layernorm=True, partial_rotary_factor=0.5),
    "phi": case("PhiConfig", num_key_value_heads=4),
    "gpt2": case("GPT2Config", n_inner=160),
    "gpt2-gelu": case("GPT2Config", dtype="bfloat16", max_shard_size="300KB", activation_function="gelu"),
    "gpt_neox": case("GPTNeoXConfig"),
    "gpt_neox-serial": case("GPTNeoXConfig", dtype="bfloat16", max_shard_size="300KB", use_parallel_residual=False,
                            hidden_act="gelu_fast", rope_parameters=dict(
                                rope_type="default", rope_theta=1000.0, partial_rotary_factor=1.0)),
    "falcon": case("FalconConfig"),
    "falcon-40b": case("FalconConfig", new_decoder_architecture=True, num_kv_heads=2, ffn_hidden_size=160),
    "falcon-11b": case("FalconConfig", dtype="bfloat16", max_shard_size="300KB", new_decoder_architecture=True, num_kv_heads=2,
                       num_ln_in_parallel_attn=1, tie_word_embeddings=False),
    "falcon-heads": case("FalconConfig", multi_query=False),
    "gpt_bigcode": case("GPTBigCodeConfig", n_inner=160),
    "gpt_bigcode-heads": case("GPTBigCodeConfig", multi_query=False),
    "nemotron": case("NemotronConfig"),
    "arcee": case("ArceeConfig", **rope(rope_type="yarn", factor=4.0, mscale=1.0, original_max_position_embeddings=64)),
    "apertus": case("ApertusConfig", rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64)),
    "bitnet": case("BitNetConfig", tie_word_embeddings=True),
    "bitnet-silu": case("BitNetConfig", tie_word_embeddings=True, hidden_act="silu"),
    "paddleocr": case("PaddleOCRVLConfig", model_class="PaddleOCRVLForConditionalGeneration", tie_word_embeddings=False, text_config={
        **SIZES, "head_dim": 32, "tie_word_embeddings": False, "rope_parameters": dict(
            rope_type="default", rope_theta=10000.0, mrope_section=[4, 6, 6])},
        vision_config=dict(num_hidden_layers=1, hidden_size=32, intermediate_size=32, num_attention_heads=2, image_size=28,
                           patch_size=14)),
    "hunyuan_vl": case("HunYuanVLConfig", model_class="HunYuanVLForConditionalGeneration", text_config={
        **SIZES, "head_dim": 32, "rope_parameters": dict(
            rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0, mrope_section=[4, 4, 4, 4])},
        vision_config=dict(hidden_size=32, intermediate_size=32, num_attention_heads=2, num_hidden_layers=1, out_hidden_size=64,
                           text_hidden_size=64, patch_size=14, max_image_size=56)),
    "glm4v": case("Glm4vConfig", model_class="Glm4vForConditionalGeneration", tie_word_embeddings=False, text_config={
        **SIZES, "head_dim": 16, "rope_parameters": dict(
            rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5, mrope_section=[2, 1, 1])},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64, image_size=28, patch_size=14)),
    "glm46v": case("Glm46VConfig", model_class="Glm46VForConditionalGeneration", tie_word_embeddings=False, text_config={
        **SIZES, "model_type": "glm4v_text", "head_dim": 16, "rope_parameters": dict(
            rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5, mrope_section=[1, 1, 2])},
        vision_config=dict(model_type="glm4v_vision", depth=1, hidden_size=32, intermediate_size=32, num_heads=2,
                           out_hidden_size=64, image_size=28, patch_size=14)),
    "glm": case("GlmConfig", head_dim=16),
    "exaone": case("ExaoneConfig", rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64)),
    "nemotron_h-latent": case("NemotronHConfig", **NEMOTRON_H, layers_block_type=[
        "linear_attention", "moe", "full_attention"], n_routed_experts=6, num_experts_per_tok=2, n_group=2, topk_group=1,
        moe_intermediate_size=64, moe_shared_expert_intermediate_size=96, moe_latent_size=32),
}

# mixtures whose config.json is read by functions of their own
DEEPSEEK = dict(
    num_key_value_heads=4, kv_lora_rank=32, qk_nope_head_dim=24, qk_rope_head_dim=16, v_head_dim=40, n_routed_experts=6,
    num_experts_per_tok=2, moe_intermediate_size=64, n_shared_experts=2)


MINICPM3 = dict(num_key_value_heads=4, kv_lora_rank=32, q_lora_rank=24, qk_nope_head_dim=24, qk_rope_head_dim=16, v_head_dim=40)


def yarn(mscale, **more):
    return dict(rope_type="yarn", rope_theta=10000.0, factor=8.0, beta_fast=32.0, beta_slow=1.0, mscale=mscale,
                mscale_all_dim=mscale, original_max_position_embeddings=32, **more)


INDEXER = dict(index_n_heads=16, index_head_dim=32, index_topk=24)
SIGMOIDS = dict(num_experts_per_tok=2, moe_intermediate_size=64, routed_scaling_factor=1.5, norm_topk_prob=True)
WINDOWS = dict(sliding_window=16, layer_types=[
    "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"])
GRANITE_SWA = dict(WINDOWS, layer_rope_theta=[10000.0, 10000.0, 0, 10000.0], attention_multiplier=0.4,
                   embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=2.0)

CASES |= {
    "deepseek_v3": case("DeepseekV3Config", **DEEPSEEK, q_lora_rank=24, n_group=3, topk_group=2, first_k_dense_replace=1,
                        routed_scaling_factor=1.5, norm_topk_prob=True, rope_parameters=yarn(1.0)),
    "deepseek_v3-plain": case("DeepseekV3Config", dtype="bfloat16", max_shard_size="300KB", **{**DEEPSEEK, "n_shared_experts": 1},
                              q_lora_rank=None, n_group=1, topk_group=1, first_k_dense_replace=2, norm_topk_prob=False),
    "deepseek_v2": case("DeepseekV2Config", **DEEPSEEK, q_lora_rank=None, first_k_dense_replace=1, topk_method="greedy",
                        rope_parameters=yarn(0.707)),
    "deepseek_v2-q": case("DeepseekV2Config", dtype="bfloat16", max_shard_size="300KB", **DEEPSEEK, q_lora_rank=24,
                          first_k_dense_replace=0, routed_scaling_factor=2.0),
    "deepseek_v2-groups": case("DeepseekV2Config", **{**DEEPSEEK, "n_routed_experts": 12, "num_experts_per_tok": 3}, q_lora_rank=24,
                               first_k_dense_replace=1, topk_method="group_limited_greedy", n_group=4, topk_group=2,
                               routed_scaling_factor=2.0),
    "minicpm3": case("MiniCPM3Config", **MINICPM3, scale_emb=3, scale_depth=2.0, dim_model_base=32, tie_word_embeddings=False),
    "minicpm3-longrope": case(
        "MiniCPM3Config", dtype="bfloat16", max_shard_size="300KB", **{**MINICPM3, "v_head_dim": None},
        rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=256,
            short_factor=[1.0 + 0.1 * i for i in range(8)], long_factor=[1.0 + 0.5 * i for i in range(8)])),
    "glm4_moe_lite": case("Glm4MoeLiteConfig", **DEEPSEEK, q_lora_rank=24, n_group=1, topk_group=1,
                          mlp_layer_types=["dense", "sparse", "sparse", "sparse"]),
    # queries attend to 24 of 81 tokens; with few heads all products of some would be negative, and their scores alike
    "deepseek_v32": case("DeepseekV32Config", **DEEPSEEK, **INDEXER, q_lora_rank=24, n_group=3, topk_group=2, first_k_dense_replace=1,
                         routed_scaling_factor=1.5, norm_topk_prob=True, rope_parameters=yarn(1.0)),
    "glm_moe_dsa": case("GlmMoeDsaConfig", dtype="bfloat16", max_shard_size="300KB", **DEEPSEEK, **INDEXER, q_lora_rank=24,
                        first_k_dense_replace=1, rms_norm_eps=1e-6),
    "glm_moe_dsa-together": case("GlmMoeDsaConfig", **DEEPSEEK, **{**INDEXER, "index_topk": 128}, q_lora_rank=24, rms_norm_eps=1e-6,
                                 first_k_dense_replace=2, indexer_types=["full", "full", "shared", "shared"]),
    "mistral4": case("Mistral4Config", model_class="Mistral4ForCausalLM", **{**DEEPSEEK, "n_shared_experts": 1}, q_lora_rank=24,
                     n_group=1, topk_group=1, rope_parameters=yarn(1.0, llama_4_scaling_beta=0.3)),
    "mistral4-picture": case(
        "Mistral3Config", model_class="Mistral3ForConditionalGeneration", tie_word_embeddings=False, text_config={
            **SIZES, **DEEPSEEK, "model_type": "mistral4", "n_shared_experts": 1, "q_lora_rank": 24, "n_group": 1, "topk_group": 1,
            "rope_parameters": yarn(1.0, llama_4_scaling_beta=0.3)},
        vision_config=dict(model_type="pixtral", num_hidden_layers=1, hidden_size=32, intermediate_size=32,
                           num_attention_heads=2, head_dim=16, image_size=28, patch_size=14)),
    "minimax_m2": case("MiniMaxM2Config", head_dim=32, num_local_experts=6, num_experts_per_tok=2, intermediate_size=64,
                       rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)),
    "qwen3vlmoe": case("Qwen3VLMoeConfig", model_class="Qwen3VLMoeForConditionalGeneration", text_config={
        **SIZES, **EXPERTS, "moe_intermediate_size": 96, "head_dim": 32, "rope_parameters": dict(
            rope_type="default", rope_theta=10000.0, mrope_section=[6, 5, 5], mrope_interleaved=True)},
        vision_config=dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64,
                           num_position_embeddings=16, deepstack_visual_indexes=[0])),
    "ernie4_5_moe": case("Ernie4_5_MoeConfig", moe_num_experts=6, moe_k=2, moe_intermediate_size=64, moe_num_shared_experts=2,
                         moe_layer_start_index=1),
    "hunyuan_moe": case("HunYuanMoEV1Config", head_dim=32, num_experts=6, moe_topk=2, intermediate_size=64,
                        rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0)),
    "dots1": case("Dots1Config", head_dim=32, n_routed_experts=6, n_shared_experts=2, first_k_dense_replace=1,
                  **SIGMOIDS),
    "exaone_moe": case("ExaoneMoeConfig", head_dim=32, num_experts=6, num_shared_experts=1, first_k_dense_replace=1,
                       **SIGMOIDS, **WINDOWS),
    "hy_v3": case("HYV3Config", head_dim=32, num_experts=6, num_experts_per_tok=2, num_shared_experts=1,
                  moe_intermediate_size=64, router_scaling_factor=1.5),
    "afmoe": case("AfmoeConfig", head_dim=32, num_experts=6, num_experts_per_tok=2, num_shared_experts=1, num_dense_layers=1,
                  moe_intermediate_size=64, route_scale=1.5, mup_enabled=True, **WINDOWS),
    "cohere2_moe": case("Cohere2MoeConfig", head_dim=32, num_experts=6, num_experts_per_tok=2, num_shared_experts=2,
                        intermediate_size=64, prefix_dense_intermediate_size=160, logit_scale=0.5,
                        expert_selection_fn="sigmoid", mlp_layer_types=["dense"] + ["sparse"] * 3, sliding_window=16,
                        layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"]),
    "granite_swa": case("GraniteSWAConfig", **GRANITE_SWA),
    "granitemoe_swa": case("GraniteMoeSWAConfig", **GRANITE_SWA, num_local_experts=6, num_experts_per_tok=2,
                           intermediate_size=64, shared_intermediate_size=96),
    "mimo_v2_flash": case("MiMoV2FlashConfig", num_key_value_heads=1, head_dim=24, v_head_dim=16, n_routed_experts=6,
                          attention_value_scale=0.7, **{**SIGMOIDS, "routed_scaling_factor": 1.0}, **WINDOWS,
                          mlp_layer_types=["dense", "sparse", "sparse", "sparse"], rope_parameters=dict(
                              full_attention=dict(rope_type="default", rope_theta=50000.0, partial_rotary_factor=0.334),
                              sliding_attention=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.334))),
    "laguna": case("LagunaConfig", head_dim=32, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=64,
                   shared_expert_intermediate_size=96, moe_routed_scaling_factor=1.5,
                   num_attention_heads_per_layer=[6, 6, 4, 6], **WINDOWS, rope_parameters=dict(
                       full_attention=dict(rope_type="yarn", rope_theta=50000.0, factor=8.0, partial_rotary_factor=0.5,
                                           beta_fast=32.0, beta_slow=1.0, original_max_position_embeddings=32),
                       sliding_attention=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=1.0))),
    "laguna-values": case("LagunaConfig", dtype="bfloat16", max_shard_size="300KB", head_dim=32, num_experts=6,
                          num_experts_per_tok=2, moe_intermediate_size=64, shared_expert_intermediate_size=64,
                          gating="per-element"),
    "step3p7": case(
        "Step3p7Config", model_class="Step3p7ForConditionalGeneration", text_config={
            **SIZES, **WINDOWS, "head_dim": 32, "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
            "share_expert_dim": 96, "num_sliding_attention_heads": 6, "moe_router_scaling_factor": 1.5,
            "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "swiglu_limits": [None, None, 0.2, 0.3],
            "swiglu_limits_shared": [0.25, None, None, 0.2], "rope_parameters": dict(
                full_attention=dict(rope_type="llama3", rope_theta=50000.0, partial_rotary_factor=0.5, factor=8.0,
                                    low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
                sliding_attention=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=1.0))},
        vision_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, mlp_ratio=2.0, image_size=28)),
    "bloom": case("BloomConfig", n_layer=4, n_head=4),
    "bloom-heads": case("BloomConfig", dtype="bfloat16", max_shard_size="300KB", hidden_size=96, n_layer=2, n_head=6),
    "mpt": case("MptConfig", d_model=64, n_layers=4, n_heads=4, max_seq_len=256, attn_config=dict(clip_qkv=0.8)),
    "mpt-heads": case("MptConfig", dtype="bfloat16", max_shard_size="300KB", d_model=96, n_layers=2, n_heads=6,
                      max_seq_len=256),
    "dbrx": case("DbrxConfig", d_model=64, n_heads=4, n_layers=4, max_seq_len=256,
                 attn_config=dict(clip_qkv=0.8, kv_n_heads=2, rope_theta=10000.0),
                 ffn_config=dict(ffn_hidden_size=96, moe_num_experts=6, moe_top_k=2)),
    "bailing_hybrid": case(
        "BailingHybridConfig", **{**KIMI_LINEAR, "linear_head_dim": 32}, head_dim=32, n_shared_experts=1, n_group=3, topk_group=2,
        layer_types=["linear_attention", "full_attention", "linear_attention", "linear_attention"],
        mlp_layer_types=["dense"] + ["sparse"] * 3),
}


def mix(z):
    """splitmix64's output function."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def key_of(name):
    key = np.uint64(0xCBF29CE484222325)
    for c in name.encode():
        key = (key ^ np.uint64(c)) * np.uint64(0x100000001B3)
    return mix(key + np.uint64(SEED))


def mxfp4_bytes(name, shape):
    """Pairs of FP4 numbers, or exponents of their scales, from 2^-6 to 2^-3."""
    n = int(np.prod(shape))
    x = (mix(key_of(name) + np.arange(n, dtype=np.uint64)) & np.uint64(0xFF)).astype(np.uint8)
    return torch.from_numpy((x if name.endswith("_blocks") else 121 + x % 4).astype(np.uint8).reshape(shape))


def normal(name, n):
    """n nearly normal values (sums of eight 16-bit uniforms), the same as in the test."""
    key = key_of(name)
    index = np.arange(n, dtype=np.uint64)
    total = np.full(n, -4 * 65535, dtype=np.int64)
    for word in range(2):
        bits = mix(key + (np.uint64(2) * index + np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15))
        for _ in range(4):
            total += (bits & np.uint64(0xFFFF)).astype(np.int64)
            bits >>= np.uint64(16)
    return total.astype(np.float32) * np.float32(1 / 53509.92)


def values(name, shape, one_plus):
    """The weights of one tensor; one_plus: norms compute with 1 + w, but for those of linear attention."""
    x = normal(name, int(np.prod(shape)))
    if name.endswith(("norm.weight", "norm_1.weight", "norm_2.weight", "layer_scalar", ".scale", "per_expert_scale",
                      "ln_1.weight", "ln_2.weight", "ln_f.weight", "ln_attn.weight", "ln_mlp.weight",
                      "transformer.norm_f.weight", ".a_g", ".head_g", ".w_g", "norm_weight", ".q_weight", ".k_weight",
                      "ln1.weight", "ln2.weight", "ln_x.weight", "ln_out.weight", "pre_ln.weight")) or "norm.norms." in name:
        x = x * np.float32(0.2) + np.float32(0 if one_plus and "linear_attn" not in name else 1)
    else:
        x = x * np.float32(0.12)
    return torch.from_numpy(x.reshape(shape))


def generated_ids(n, n_vocab, seed):
    """The same ids as the tests: from a linear congruential generator, without control tokens."""
    state, ids = seed, []
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        ids.append(3 + (state >> 8) % (n_vocab - 3))
    return ids


def make_folder(spec, folder):
    config = getattr(transformers, spec["config_class"])(**spec["config"])
    model_class = getattr(transformers, spec["model_class"])
    automatic = model_class is transformers.AutoModelForCausalLM
    model = model_class.from_config(config) if automatic else model_class(config)
    one_plus = spec["config_class"].startswith(
        ("GemmaConfig", "Gemma2Config", "Gemma3Text", "NemotronConfig", "Qwen3_5", "Qwen3Next", "Step3p7"))
    model.to(getattr(torch, spec["dtype"])).save_pretrained(folder, max_shard_size=spec["max_shard_size"])
    for path in folder.glob("*.safetensors"):  # the names of files, which models may have under others
        with safe_open(path, framework="pt") as f:
            tensors = {name: values(name, tuple(f.get_slice(name).get_shape()), one_plus) for name in f.keys()}
        tensors = {name: t.to(getattr(torch, spec["dtype"])) for name, t in tensors.items()}
        save_file(with_mxfp4(tensors) if spec["mxfp4"] else tensors, path, {"format": "pt"})
    if spec["mxfp4"]:
        json_config = json.loads((folder / "config.json").read_text())
        json_config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": []}
        (folder / "config.json").write_text(json.dumps(json_config))


def with_mxfp4(tensors):
    """The same with experts' matrices as gpt-oss is published: [n_expert, n_out, n_in / 32, 16], and scales."""
    result = {}
    for name, tensor in tensors.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            result[name] = tensor
            continue
        n_expert, n_in, n_out = tensor.shape
        for ending, shape in (("_blocks", (n_expert, n_out, n_in // 32, 16)), ("_scales", (n_expert, n_out, n_in // 32))):
            result[name + ending] = mxfp4_bytes(name + ending, shape)
    return result


def saved_tensors(folder):
    """File, name and shape of the tensors in the folder."""
    files = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as f:
            files[path.name] = {name: list(f.get_slice(name).get_shape()) for name in f.keys()}
    return files


def record(folder, model_class):
    model = getattr(transformers, model_class).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").float().eval()
    if model_class == "Llama4ForConditionalGeneration":  # whose forward() needs pictures in transformers 5.24
        model = model.language_model
    ids = [1] + generated_ids(N_TEACHER + 16, SIZES["vocab_size"], 7)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    rows = torch.log_softmax(logits, -1)[-1 - N_TEACHER:-1]
    top = rows.topk(2, dim=-1)
    return {
        "ids": ids,
        "next_logprob": [round(rows[i, ids[len(ids) - N_TEACHER + i]].item(), 6) for i in range(N_TEACHER)],
        "best": top.indices[:, 0].tolist(),
        "best_logprob": [round(p, 6) for p in top.values[:, 0].tolist()],
        "second_logprob": [round(p, 6) for p in top.values[:, 1].tolist()],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("case", nargs="?", choices=CASES)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--folder", type=pathlib.Path)
    args = parser.parse_args()
    if args.list or not args.out:
        print(" ".join(CASES))
        return
    torch.set_num_threads(1)
    spec = CASES[args.case]
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or pathlib.Path(temporary)
        make_folder(spec, folder)
        config = json.loads((folder / "config.json").read_text())
        golden = {
            "command": f"tools/hf_oracle.py {args.case} --out {pathlib.Path(args.out).name}",
            "transformers": transformers.__version__,
            "dtype": spec["dtype"],
            "config": config,
            "files": saved_tensors(folder),
            "teacher": record(folder, spec["model_class"]),
        }
    with open(args.out, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    with np.errstate(over="ignore"):
        main()
