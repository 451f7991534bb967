# SPDX-License-Identifier: MIT
"""Cases of hf_llama_oracle.py: mixtures of experts, and other models whose folders bring their own Python code."""

from hf_llama_dense import FF, HEAD, HIDDEN, N_HEAD, N_KV, N_LAYERS, N_VOCAB, case, config

N_EXPERT, EXPERT_FF = 8, 32


def network(prefix, width, names=("gate_proj", "up_proj", "down_proj")):
    """Gate, up and down of a network."""
    gate, up, down = (f"{prefix}.{name}.weight" for name in names)
    return {gate: (width, HIDDEN), up: (width, HIDDEN), down: (HIDDEN, width)}


def of_layers(tensors, layers):
    """Tensors of the layers that are named, of names with {}."""
    return {name.format(layer): shape for layer in layers for name, shape in tensors.items()}


def experts(prefix, n=N_EXPERT, width=EXPERT_FF, names=("gate_proj", "up_proj", "down_proj")):
    return {name: shape for e in range(n) for name, shape in network(f"{prefix}.{e}", width, names).items()}


def head_matrices(prefix="self_attn", head=HEAD, n_head=N_HEAD, n_kv=N_KV):
    return {
        f"model.layers.{{}}.{prefix}.q_proj.weight": (n_head * head, HIDDEN),
        f"model.layers.{{}}.{prefix}.k_proj.weight": (n_kv * head, HIDDEN),
        f"model.layers.{{}}.{prefix}.v_proj.weight": (n_kv * head, HIDDEN),
        f"model.layers.{{}}.{prefix}.o_proj.weight": (HIDDEN, n_head * head),
    }


NORMS = {"model.layers.{}.input_layernorm.weight": (HIDDEN,), "model.layers.{}.post_attention_layernorm.weight": (HIDDEN,)}
ENDS = {"model.embed_tokens.weight": (N_VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,), "lm_head.weight": (N_VOCAB, HIDDEN)}
TIED = {name: shape for name, shape in ENDS.items() if name != "lm_head.weight"}

# ---- Ling: queries, keys and values of all heads in one matrix ----
LING = {
    "model.word_embeddings.weight": (N_VOCAB, HIDDEN),
    **NORMS,
    "model.layers.{}.attention.query_key_value.weight": ((N_HEAD + 2 * N_KV) * HEAD, HIDDEN),
    "model.layers.{}.attention.dense.weight": (HIDDEN, N_HEAD * HEAD),
    "model.norm.weight": (HIDDEN,),
    "lm_head.weight": (N_VOCAB, HIDDEN),
}
LING_CONFIG = dict(
    num_experts=N_EXPERT, num_experts_per_tok=3, moe_intermediate_size=EXPERT_FF, norm_topk_prob=True, use_bias=False,
    use_qkv_bias=False, head_dim=HEAD, rope_theta=600000.0, rope_scaling=None)
LING2 = {
    **LING,
    "model.layers.{}.attention.query_layernorm.weight": (HEAD,),
    "model.layers.{}.attention.key_layernorm.weight": (HEAD,),
    **of_layers(network("model.layers.{}.mlp", FF), range(1)),
    **of_layers({
        "model.layers.{}.mlp.gate.weight": (N_EXPERT, HIDDEN),
        "model.layers.{}.mlp.gate.expert_bias": (N_EXPERT,),
        **network("model.layers.{}.mlp.shared_experts", EXPERT_FF),
        **experts("model.layers.{}.mlp.experts"),
    }, range(1, N_LAYERS)),
}
LING1_FFN = {
    "model.layers.{}.mlp.gate.weight": (N_EXPERT, HIDDEN),
    **network("model.layers.{}.mlp.shared_experts", 2 * EXPERT_FF),
    **experts("model.layers.{}.mlp.experts"),
}

# ---- DeepSeek ----
DEEPSEEK = {
    **ENDS, **NORMS, **head_matrices(),
    **of_layers(network("model.layers.{}.mlp", FF), range(1)),
    **of_layers(LING1_FFN, range(1, N_LAYERS)),
}
DEEPSEEK_CONFIG = dict(
    n_routed_experts=N_EXPERT, n_shared_experts=2, num_experts_per_tok=3, moe_intermediate_size=EXPERT_FF,
    first_k_dense_replace=1, moe_layer_freq=1, norm_topk_prob=False, scoring_func="softmax", rope_theta=10000.0)
OCR_CONFIG = dict(DEEPSEEK_CONFIG, num_key_value_heads=N_HEAD, use_mla=False, topk_method="greedy", rms_norm_eps=None,
                  n_group=1, topk_group=1, qk_nope_head_dim=0, qk_rope_head_dim=0,
                  v_head_dim=0, kv_lora_rank=None, q_lora_rank=None)
OCR_PARTS = {"model.sam_model.neck.0.weight": (4, 4), "model.image_newline": (HIDDEN,), "model.view_seperator": (HIDDEN,)}

# ---- GroveMoE: two experts share an adjugate of 128 values ----
GROVE_HEAD = 128
GROVE = {
    **ENDS, **NORMS, **head_matrices(head=GROVE_HEAD, n_head=2, n_kv=1),
    "model.layers.{}.self_attn.q_norm.weight": (GROVE_HEAD,),
    "model.layers.{}.self_attn.k_norm.weight": (GROVE_HEAD,),
    "model.layers.{}.mlp.gate.weight": (N_EXPERT, HIDDEN),
    "model.layers.{}.mlp.expert_bias": (N_EXPERT,),
    **experts("model.layers.{}.mlp.experts"),
    **experts("model.layers.{}.mlp.chunk_experts", N_EXPERT // 2, 128),
}

# ---- SmallThinker: routes by what the layer reads ----
SMALLTHINKER = {
    **TIED, **NORMS, **head_matrices(),
    "model.layers.{}.block_sparse_moe.primary_router.weight": (N_EXPERT, HIDDEN),
    **experts("model.layers.{}.block_sparse_moe.experts", names=("gate", "up", "down")),
}
SMALLTHINKER_CONFIG = dict(
    intermediate_size=None, hidden_act=None, head_dim=HEAD, moe_num_primary_experts=N_EXPERT,
    moe_num_active_primary_experts=3, moe_ffn_hidden_size=EXPERT_FF, rope_theta=1500000.0, tie_word_embeddings=True)

# ---- Arctic: a dense network and experts in each layer ----
ARCTIC = {
    **ENDS, **NORMS, **head_matrices(),
    "model.layers.{}.residual_layernorm.weight": (HIDDEN,),
    **network("model.layers.{}.residual_mlp", HIDDEN, ("w1", "w3", "w2")),
    "model.layers.{}.block_sparse_moe.gate.weight": (N_EXPERT, HIDDEN),
    **experts("model.layers.{}.block_sparse_moe.experts", width=FF, names=("w1", "w3", "w2")),
}

# ---- PLM: latent attention ----
LATENT, OWN, SHARED, VALUE = 32, 24, 16, 20
PLM = {
    **TIED, **NORMS,
    "model.layers.{}.self_attn.q_proj.weight": (N_HEAD * (OWN + SHARED), HIDDEN),
    "model.layers.{}.self_attn.kv_a_proj_with_mqa.weight": (LATENT + SHARED, HIDDEN),
    "model.layers.{}.self_attn.kv_a_layernorm.weight": (LATENT,),
    "model.layers.{}.self_attn.kv_b_proj.weight": (N_HEAD * (OWN + VALUE), LATENT),
    "model.layers.{}.self_attn.o_proj.weight": (HIDDEN, N_HEAD * VALUE),
    "model.layers.{}.mlp.up_proj.weight": (FF, HIDDEN),
    "model.layers.{}.mlp.down_proj.weight": (HIDDEN, FF),
}

# ---- PLaMo 2 and 3 ----
PLAMO = {
    **TIED,
    **{f"model.layers.layers.{{}}.{name}_norm.weight": (HIDDEN,)
       for name in ("pre_mixer", "post_mixer", "pre_mlp", "post_mlp")},
    "model.layers.layers.{}.mlp.gate_up_proj.weight": (2 * FF, HIDDEN),
    "model.layers.layers.{}.mlp.down_proj.weight": (HIDDEN, FF),
}
PLAMO_ATTENTION = {
    "model.layers.layers.{}.mixer.qkv_proj.weight": ((N_HEAD + 2 * N_KV) * HEAD, HIDDEN),
    "model.layers.layers.{}.mixer.o_proj.weight": (HIDDEN, N_HEAD * HEAD),
}
PLAMO3 = {
    **PLAMO, **PLAMO_ATTENTION,
    "model.layers.layers.{}.mixer.q_norm.weight": (HEAD,),
    "model.layers.layers.{}.mixer.k_norm.weight": (HEAD,),
}
MIXER_HEAD, N_MIXER_HEAD, N_STATE = 32, 4, 24
CHANNELS = N_MIXER_HEAD * MIXER_HEAD
PLAMO2_ATTENTION = {
    "model.layers.layers.{}.mixer.qkv_proj.weight": ((N_HEAD + 2 * N_KV) * MIXER_HEAD, HIDDEN),
    "model.layers.layers.{}.mixer.o_proj.weight": (HIDDEN, N_HEAD * MIXER_HEAD),
    "model.layers.layers.{}.mixer.q_weight": (N_HEAD, MIXER_HEAD),
    "model.layers.layers.{}.mixer.k_weight": (N_KV, MIXER_HEAD),
}
PLAMO2_MAMBA = {
    "model.layers.layers.{}.mixer.in_proj.weight": (2 * CHANNELS, HIDDEN),
    "model.layers.layers.{}.mixer.conv1d.weight": (CHANNELS, 1, 4),
    "model.layers.layers.{}.mixer.bcdt_proj.weight": (64 + 2 * N_STATE, CHANNELS),
    "model.layers.layers.{}.mixer.dt_norm_weight": (64,),
    "model.layers.layers.{}.mixer.B_norm_weight": (N_STATE,),
    "model.layers.layers.{}.mixer.C_norm_weight": (N_STATE,),
    "model.layers.layers.{}.mixer.dt_proj.weight": (N_MIXER_HEAD, 64),
    "model.layers.layers.{}.mixer.dt_bias": (N_MIXER_HEAD,),
    "model.layers.layers.{}.mixer.A_log": (N_MIXER_HEAD,),
    "model.layers.layers.{}.mixer.D": (N_MIXER_HEAD,),
    "model.layers.layers.{}.mixer.out_proj.weight": (HIDDEN, CHANNELS),
}

# llama.cpp rotates as many values as the first layer has in a head, which has none in the files of its converter
PLAMO2_NUMBERS = {"plamo2.attention.head_count": N_HEAD, "plamo2.rope.dimension_count": MIXER_HEAD}

# ---- Llama Nemotron: attention, a matrix or nothing in its place, a network or none ----
DECI_FFN = {"model.layers.{}.post_attention_layernorm.weight": (HIDDEN,)}
DECI_ATTENTION = {"model.layers.{}.input_layernorm.weight": (HIDDEN,), **head_matrices()}


def deci_block(n_in_group, factor, linear=False):
    attention = dict(n_heads_in_group=n_in_group, no_op=n_in_group is None and not linear, num_sink_tokens=None,
                     replace_with_linear=linear, sparsify=None, unshifted_sink=False,
                     use_prefill_window_in_sink_attention=False, window_length=None)
    return dict(attention=attention,
                ffn=dict(ffn_mult=factor, no_op=factor is None, replace_with_linear=False, sparsify=None))


DECI_BLOCKS = [deci_block(2, 2.625), deci_block(None, 5.0, linear=True), deci_block(None, 2.625), deci_block(None, None),
               deci_block(4, 2.625), deci_block(1, 11.0)]
DECI_WIDTHS = {0: 256, 1: 256, 2: 256, 4: 256, 5: 512}
DECI = {
    **ENDS,
    **{name: shape for layer, n_kv in ((0, 2), (4, 1), (5, 4))
       for name, shape in of_layers({"model.layers.{}.input_layernorm.weight": (HIDDEN,), **head_matrices(n_kv=n_kv)},
                                    [layer]).items()},
    "model.layers.1.input_layernorm.weight": (HIDDEN,),
    "model.layers.1.self_attn.linear_attn.weight": (HIDDEN, HIDDEN),
    **{name: shape for layer, width in DECI_WIDTHS.items()
       for name, shape in of_layers({**DECI_FFN, **network("model.layers.{}.mlp", width)}, [layer]).items()},
}
DECILM = {
    **ENDS, **NORMS, **network("model.layers.{}.mlp", FF),
    **{name: shape for layer, n_kv in enumerate((4, 2, 1, 2)) for name, shape in of_layers(head_matrices(n_kv=n_kv),
                                                                                          [layer]).items()},
}

# ---- Talkie: factors of blocks, embeddings, heads and logits ----
TALKIE = {
    "model.embed.weight": (N_VOCAB, HIDDEN),
    **{f"model.blocks.{{}}.attn.attn_{name}.weight": (N_HEAD * HEAD, HIDDEN) for name in ("query", "key", "value")},
    "model.blocks.{}.attn.attn_resid.weight": (HIDDEN, N_HEAD * HEAD),
    "model.blocks.{}.attn.head_gain.head_g": (N_HEAD,),
    "model.blocks.{}.attn_gain.a_g": (1,),
    **network("model.blocks.{}.mlp", FF, ("mlp_gate", "mlp_linear", "mlp_resid")),
    "model.blocks.{}.mlp_gain.a_g": (1,),
    "model.blocks.{}.embed_skip.a_g": (1,),
    "lm_head": (N_VOCAB, HIDDEN),
    "lm_head_gain.w_g": (1,),
}

# ---- RWKV. llama.cpp 0.7.0 computes RWKV 7 with AVX-512 right only if heads have 64 values: record without (haswell) ----
RWKV_HEAD = 32
DECAY, RATE, FIRST, GATE = 24, 16, 40, 48


def vectors(prefix, names, shape=(1, 1, HIDDEN)):
    return {f"{prefix}{name}": shape for name in names}


def normed(*names):
    return {f"{name}.{part}": (HIDDEN,) for name in names for part in ("weight", "bias")}


def low_rank(prefix, rank, bias=True):
    """Two matrices as flash-linear-attention names them."""
    shapes = {f"{prefix}_lora.lora.0.weight": (rank, HIDDEN), f"{prefix}_lora.lora.2.weight": (HIDDEN, rank)}
    return {**shapes, f"{prefix}_lora.lora.2.bias": (HIDDEN,)} if bias else shapes


def bare_low_rank(prefix, rank, bias=True):
    """The same as RWKV's authors name them."""
    shapes = {f"{prefix}1": (HIDDEN, rank), f"{prefix}2": (rank, HIDDEN)}
    return {**shapes, f"{prefix}0": (1, 1, HIDDEN)} if bias else shapes


def matrices(prefix, names):
    return {f"{prefix}{name}.weight": (HIDDEN, HIDDEN) for name in names}


RWKV_ENDS = {"lm_head.weight": (N_VOCAB, HIDDEN)}
RWKV7 = {
    **RWKV_ENDS, "model.embeddings.weight": (N_VOCAB, HIDDEN), **normed("model.norm", "model.layers.0.pre_norm"),
    **normed("model.layers.{}.attn_norm", "model.layers.{}.ffn_norm", "model.layers.{}.attn.g_norm"),
    **vectors("model.layers.{}.attn.x_", "rwkvag"), "model.layers.{}.attn.k_k": (HIDDEN,),
    "model.layers.{}.attn.k_a": (HIDDEN,), "model.layers.{}.attn.r_k": (HIDDEN // RWKV_HEAD, RWKV_HEAD),
    **matrices("model.layers.{}.attn.", ("r_proj", "k_proj", "v_proj", "o_proj")),
    **low_rank("model.layers.{}.attn.w", DECAY), **low_rank("model.layers.{}.attn.a", RATE),
    **of_layers(low_rank("model.layers.{}.attn.v", FIRST), range(1, N_LAYERS)),
    **low_rank("model.layers.{}.attn.g", GATE, bias=False),
    "model.layers.{}.ffn.x_k": (HIDDEN,), "model.layers.{}.ffn.key.weight": (FF, HIDDEN),
    "model.layers.{}.ffn.value.weight": (HIDDEN, FF),
}
MIXER = "model.layers.{}.self_attn.time_mixer."
ARWKV7 = {
    **ENDS, **NORMS, **network("model.layers.{}.mlp", FF), **vectors(MIXER + "x_", "rwkva"),
    **vectors(MIXER, ("k_k", "k_a")), MIXER + "r_k": (HIDDEN // RWKV_HEAD, RWKV_HEAD),
    **matrices(MIXER, ("receptance", "key", "value", "output")), **bare_low_rank(MIXER + "w", 64),
    **bare_low_rank(MIXER + "a", 64), **of_layers(bare_low_rank(MIXER + "v", 32), range(1, N_LAYERS)),
}
ARWKV7_MORE = {**vectors(MIXER + "x_", "g"), **bare_low_rank(MIXER + "g", 128, bias=False), **normed(MIXER + "ln_x")}
ARWKV_CONFIG = dict(num_key_value_heads=None, num_attention_heads=None, head_size=RWKV_HEAD, wkv_version=7, wkv_layers="full")


def rwkv6_mixer(prefix, mix_rank, decay_rank):
    return {
        **vectors(prefix + "time_maa_", "xwkvrg"), prefix + "time_maa_w1": (HIDDEN, 5 * mix_rank),
        prefix + "time_maa_w2": (5, mix_rank, HIDDEN), prefix + "time_decay": (1, 1, HIDDEN),
        prefix + "time_decay_w1": (HIDDEN, decay_rank), prefix + "time_decay_w2": (decay_rank, HIDDEN),
    }


BLOCK = "rwkv.blocks.{}."
RWKV6 = {
    "rwkv.embeddings.weight": (N_VOCAB, HIDDEN), "head.weight": (N_VOCAB, HIDDEN),
    **normed("rwkv.ln_out", "rwkv.blocks.0.pre_ln", BLOCK + "ln1", BLOCK + "ln2", BLOCK + "attention.ln_x"),
    **rwkv6_mixer(BLOCK + "attention.", 32, 64), BLOCK + "attention.time_faaaa": (HIDDEN // RWKV_HEAD, RWKV_HEAD),
    **matrices(BLOCK + "attention.", ("receptance", "key", "value", "gate", "output")),
    **vectors(BLOCK + "feed_forward.time_maa_", "kr"), BLOCK + "feed_forward.key.weight": (FF, HIDDEN),
    BLOCK + "feed_forward.receptance.weight": (HIDDEN, HIDDEN), BLOCK + "feed_forward.value.weight": (HIDDEN, FF),
}
QRWKV6 = {
    **ENDS, **NORMS, **network("model.layers.{}.mlp", FF), **rwkv6_mixer("model.layers.{}.self_attn.", 24, 40),
    **head_matrices(), "model.layers.{}.self_attn.gate.weight": (HIDDEN, HIDDEN),
    "model.layers.{}.self_attn.q_proj.bias": (N_HEAD * HEAD,), "model.layers.{}.self_attn.k_proj.bias": (N_KV * HEAD,),
    "model.layers.{}.self_attn.v_proj.bias": (N_KV * HEAD,),
}

CASES = {
    "ling2": case(config("BailingMoeV2ForCausalLM", "bailing_moe", **LING_CONFIG, num_shared_experts=1, n_group=4,
                         topk_group=2, routed_scaling_factor=2.5, first_k_dense_replace=1, score_function="sigmoid",
                         moe_router_enable_expert_bias=True, partial_rotary_factor=0.5, use_qk_norm=True,
                         num_nextn_predict_layers=0), LING2),
    "ling1": case(config("BailingMoeForCausalLM", "bailing_moe", **LING_CONFIG, num_shared_experts=2,
                         first_k_dense_replace=0, norm_head=True, norm_softmax=False),
                  {**LING, **LING1_FFN}),
    "ling1-plain": case(config("BailingMoeForCausalLM", "bailing_moe", **dict(LING_CONFIG, norm_topk_prob=False),
                               num_shared_experts=2, first_k_dense_replace=0, norm_head=False), {**LING, **LING1_FFN}),
    "deepseek_moe": case(config("DeepseekForCausalLM", "deepseek", **DEEPSEEK_CONFIG), DEEPSEEK),
    "deepseek_ocr": case(config("DeepseekOCRForCausalLM", "deepseek_vl_v2", **OCR_CONFIG, language_config=config(
        "DeepseekV2ForCausalLM", "deepseek_v2", **OCR_CONFIG)), {**DEEPSEEK, **head_matrices(n_kv=N_HEAD), **OCR_PARTS}),
    "grove_moe": case(config("GroveMoeForCausalLM", "grove_moe", num_attention_heads=2, num_key_value_heads=1,
                             head_dim=GROVE_HEAD, num_experts=N_EXPERT, num_experts_per_tok=3,
                             moe_intermediate_size=EXPERT_FF, norm_topk_prob=True, decoder_sparse_step=1,
                             mlp_only_layers=[], rope_theta=1000000.0), GROVE) | dict(transformers="grovemoe"),
    # llama.cpp rotates all layers of a model of four
    "smallthinker": case(config("SmallThinkerForCausalLM", "smallthinker", **SMALLTHINKER_CONFIG, num_hidden_layers=5,
                                rope_layout=[0, 1, 1, 1, 0], sliding_window_layout=[0, 1, 1, 1, 0],
                                sliding_window_size=4096, moe_primary_router_apply_softmax=False), SMALLTHINKER, n_layers=5),
    "smallthinker-softmax": case(config("SmallThinkerForCausalLM", "smallthinker", **SMALLTHINKER_CONFIG,
                                        rope_layout=[1] * 4, sliding_window_layout=[0] * 4, sliding_window_size=4096,
                                        moe_primary_router_apply_softmax=True), SMALLTHINKER),
    "arctic": case(config("ArcticForCausalLM", "arctic", num_local_experts=N_EXPERT, num_experts_per_tok=2,
                          moe_layer_frequency=1, parallel_attn_mlp_res=True, use_residual=True, rope_theta=10000.0), ARCTIC),
    "plm": case(config("PLMForCausalLM", "plm", num_key_value_heads=N_HEAD, hidden_act="relu2", kv_lora_rank=LATENT,
                       q_lora_rank=None, qk_nope_head_dim=OWN, qk_rope_head_dim=SHARED, v_head_dim=VALUE,
                       rope_theta=100000.0, tie_word_embeddings=True), PLM),
    "plamo3": case(config("Plamo3ForCausalLM", "plamo3", head_dim=HEAD, hidden_act=None, rms_norm_eps=1e-6, window_size=16,
                          sliding_window_pattern=3, rope_theta=1000000.0, rope_local_theta=10000.0,
                          tie_word_embeddings=True), PLAMO3),
    # the base is such that YaRN's mix changes at whole pairs, to which llama.cpp rounds
    "plamo3-yarn": case(config("Plamo3ForCausalLM", "plamo3", head_dim=HEAD, hidden_act=None, rms_norm_eps=1e-6,
                               window_size=16, sliding_window_pattern=3, rope_theta=10764.6734, rope_local_theta=10000.0,
                               rope_scaling_factor=4.0, initial_context_length=64, tie_word_embeddings=True), PLAMO3),
    "plamo2": case(config("Plamo2ForCausalLM", "plamo2", hidden_act=None, rms_norm_eps=1e-6, hidden_size_per_head=MIXER_HEAD,
                          mamba_d_state=N_STATE, mamba_d_conv=4, mamba_num_heads=N_MIXER_HEAD, mamba_step=2,
                          mamba_enabled=True, tie_word_embeddings=True),
                   {**PLAMO, **of_layers(PLAMO2_MAMBA, (0, 2)), **of_layers(PLAMO2_ATTENTION, (1, 3))})
    | dict(numbers=PLAMO2_NUMBERS),
    "nemotron_nas": case(config("DeciLMForCausalLM", "nemotron-nas", num_hidden_layers=6, num_key_value_heads=None,
                                intermediate_size=None, block_configs=DECI_BLOCKS, rope_theta=500000.0,
                                rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                                  high_freq_factor=4.0, original_max_position_embeddings=64)), DECI,
                         n_layers=6),
    "decilm": case(config("DeciLMForCausalLM", "deci", num_key_value_heads_per_layer=[4, 2, 1, 2], rope_theta=10000.0),
                   DECILM),
    "rwkv7": case(config("RWKV7ForCausalLM", "rwkv7", num_attention_heads=None, num_key_value_heads=None,
                         hidden_act="sqrelu", rms_norm_eps=None, norm_eps=1e-5, norm_bias=True, norm_first=True,
                         head_dim=RWKV_HEAD, decay_low_rank_dim=DECAY, a_low_rank_dim=RATE, v_low_rank_dim=FIRST,
                         gate_low_rank_dim=GATE, value_dim=[HIDDEN] * N_LAYERS), RWKV7),
    "arwkv7": case(config("RwkvHybridForCausalLM", "rwkv_hybrid", **ARWKV_CONFIG, wkv_has_gate=True, wkv_has_group_norm=True),
                   {**ARWKV7, **ARWKV7_MORE}),
    "arwkv7-bare": case(config("RwkvHybridForCausalLM", "rwkv_hybrid", **ARWKV_CONFIG, wkv_has_gate=False,
                               wkv_has_group_norm=False), ARWKV7),
    "rwkv6": case(config("Rwkv6ForCausalLM", "rwkv6", num_attention_heads=None, num_key_value_heads=None, rms_norm_eps=None,
                         hidden_act=None, head_size=RWKV_HEAD, head_size_divisor=8, layer_norm_epsilon=1e-5,
                         rescale_every=2), RWKV6),
    "qrwkv6": case(config("RWKV6Qwen2ForCausalLM", "rwkv6qwen2", lora_rank_tokenshift=24, lora_rank_decay=40), QRWKV6),
    "talkie": case(config("TalkieForCausalLM", "talkie", hidden_act=None, num_key_value_heads=None, rms_norm_eps=None,
                          head_dim=HEAD, rope_theta=1000000.0), TALKIE),
}
