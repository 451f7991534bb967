# SPDX-License-Identifier: MIT
"""Cases of hf_llama_oracle.py: dense models. A case is the config.json and the tensors, with {} for a layer's number."""

HIDDEN, FF, HEAD, N_HEAD, N_KV, N_LAYERS, N_VOCAB = 64, 160, 16, 4, 2, 4, 320
GELU_TABLE = 2e-3  # llama.cpp looks GELU up in a table of F16 values, also where a model has the exact one


def case(config, tensors, dtype="float32", n_layers=N_LAYERS, absent=(), by_layer=None, sizes=(), mends=(),
         tolerance=None):
    """absent: names of `tensors` that the folder lacks although others of its kind have them. by_layer: the shapes of a layer's
    tensors, where they differ. sizes: numbers in the converter's code of the class, which is written for one model, and those
    of the case. mends: lines of that code that fail, and what they should be. tolerance: of log-probabilities, where llama.cpp
    computes less exactly."""
    tensors = {name: shape for name, shape in tensors.items() if name not in absent}
    return dict(config=dict(config, torch_dtype=dtype), tensors=tensors, dtype=dtype, n_layers=n_layers, by_layer=by_layer,
                sizes=dict(sizes), mends=dict(mends), tolerance=tolerance)


def config(architecture, model_type, **fields):
    """The fields that most classes have; None leaves one of them out."""
    every = dict(
        architectures=[architecture], model_type=model_type, vocab_size=N_VOCAB, hidden_size=HIDDEN, intermediate_size=FF,
        num_hidden_layers=N_LAYERS, num_attention_heads=N_HEAD, num_key_value_heads=N_KV, max_position_embeddings=256,
        hidden_act="silu", rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
    every.update(fields)
    return {name: value for name, value in every.items() if value is not None}


# queries, keys and values of a head of keys after those of another
INTERNLM2 = {
    "model.tok_embeddings.weight": (N_VOCAB, HIDDEN),
    "model.layers.{}.attention_norm.weight": (HIDDEN,),
    "model.layers.{}.attention.wqkv.weight": ((N_HEAD + 2 * N_KV) * HEAD, HIDDEN),
    "model.layers.{}.attention.wo.weight": (HIDDEN, N_HEAD * HEAD),
    "model.layers.{}.ffn_norm.weight": (HIDDEN,),
    "model.layers.{}.feed_forward.w1.weight": (FF, HIDDEN),
    "model.layers.{}.feed_forward.w3.weight": (FF, HIDDEN),
    "model.layers.{}.feed_forward.w2.weight": (HIDDEN, FF),
    "model.norm.weight": (HIDDEN,),
    "output.weight": (N_VOCAB, HIDDEN),
}


def llama(n_embd=HIDDEN, ff=FF, n_head=N_HEAD, n_kv=N_KV, head=HEAD, norm_biases=False, biases=(), qk_norm=False,
          packed=False):
    """The tensors of classes that are named as Llama's. packed: queries, keys and values in one matrix."""
    n_q, n_k = n_head * head, n_kv * head
    layer = "model.layers.{}."
    rows = {"q_proj": (n_q, n_embd), "k_proj": (n_k, n_embd), "v_proj": (n_k, n_embd)}
    attention = {"W_pack": (n_q + 2 * n_k, n_embd)} if packed else rows
    attention["o_proj"] = (n_embd, n_q)
    shapes = {"model.embed_tokens.weight": (N_VOCAB, n_embd), layer + "input_layernorm.weight": (n_embd,)}
    for name, shape in attention.items():
        shapes[f"{layer}self_attn.{name}.weight"] = shape
        if name in biases:
            shapes[f"{layer}self_attn.{name}.bias"] = shape[:1]
    if qk_norm:
        shapes.update({layer + "self_attn.q_norm.weight": (head,), layer + "self_attn.k_norm.weight": (head,)})
    shapes[layer + "post_attention_layernorm.weight"] = (n_embd,)
    shapes.update({layer + "mlp.gate_proj.weight": (ff, n_embd), layer + "mlp.up_proj.weight": (ff, n_embd),
                   layer + "mlp.down_proj.weight": (n_embd, ff)})
    shapes.update({"model.norm.weight": (n_embd,), "lm_head.weight": (N_VOCAB, n_embd)})
    if norm_biases:
        shapes.update({name[:-6] + "bias": shape for name, shape in shapes.items() if "norm" in name})
    return shapes


def gpt(ff=FF, n_kv=N_HEAD, up=("c_fc",), biases=(), transposed=False, norm_biases=True):
    """The tensors of classes that are named as GPT-2's."""
    layer = "transformer.h.{}."
    matrices = {"attn.c_attn": ((N_HEAD + 2 * n_kv) * HEAD, HIDDEN), "attn.c_proj": (HIDDEN, HIDDEN)}
    matrices.update({"mlp." + name: (ff, HIDDEN) for name in up})
    matrices["mlp.c_proj"] = (HIDDEN, ff)
    shapes = {"transformer.wte.weight": (N_VOCAB, HIDDEN)}
    for name, shape in matrices.items():
        shapes[f"{layer}{name}.weight"] = shape[::-1] if transposed else shape
        if name in biases:
            shapes[f"{layer}{name}.bias"] = shape[:1]
    for name in (layer + "ln_1", layer + "ln_2", "transformer.ln_f"):
        shapes[name + ".weight"] = (HIDDEN,)
        if norm_biases:
            shapes[name + ".bias"] = (HIDDEN,)
    return {**shapes, "lm_head.weight": (N_VOCAB, HIDDEN)}


ALL_OF_GPT = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_fc2", "mlp.c_proj")


def gpt_config(architecture, model_type, **fields):
    return config(architecture, model_type, hidden_size=None, intermediate_size=None, num_hidden_layers=None,
                  num_attention_heads=None, num_key_value_heads=None, max_position_embeddings=None, hidden_act=None,
                  rms_norm_eps=None, n_embd=HIDDEN, n_layer=N_LAYERS, n_head=N_HEAD, n_positions=256, layer_norm_epsilon=1e-5,
                  **fields)


def mpt(bias=False, n_kv=N_HEAD, ff=4 * HIDDEN):
    layer = "transformer.blocks.{}."
    shapes = {
        "transformer.wte.weight": (N_VOCAB, HIDDEN), layer + "norm_1.weight": (HIDDEN,), layer + "norm_2.weight": (HIDDEN,),
        layer + "attn.Wqkv.weight": ((N_HEAD + 2 * n_kv) * HEAD, HIDDEN), layer + "attn.out_proj.weight": (HIDDEN, HIDDEN),
        layer + "ffn.up_proj.weight": (ff, HIDDEN), layer + "ffn.down_proj.weight": (HIDDEN, ff),
        "transformer.norm_f.weight": (HIDDEN,)}
    if bias:
        shapes.update({name[:-6] + "bias": shape[:1] for name, shape in shapes.items() if "wte" not in name})
    return shapes


def mpt_config(attn_config, **fields):
    return config("MPTForCausalLM", "mpt", hidden_size=None, intermediate_size=None, num_hidden_layers=None,
                  num_attention_heads=None, num_key_value_heads=None, max_position_embeddings=None, hidden_act=None,
                  rms_norm_eps=None, tie_word_embeddings=None, d_model=HIDDEN, n_layers=N_LAYERS, n_heads=N_HEAD, max_seq_len=256,
                  expansion_ratio=4, norm_type="low_precision_layernorm", logit_scale=None, **fields,
                  attn_config=dict(alibi=True, alibi_bias_max=8, attn_type="multihead_attention", prefix_lm=False, qk_ln=False,
                                   softmax_scale=None, clip_qkv=None) | attn_config)


# OpenELM: heads and widths of each layer
ELM_HEADS, ELM_KV, ELM_SHARES = (2, 4, 4, 6), (1, 1, 2, 3), (0.5, 1.1, 2.0, 2.9)
ELM_WIDTHS = (32, 64, 128, 192)  # the multiples of 32 nearest to 32, 70.4, 128 and 185.6


def openelm(layer):
    n, n_kv, ff = ELM_HEADS[layer] * HEAD, ELM_KV[layer] * HEAD, ELM_WIDTHS[layer]
    return {
        "attn_norm.weight": (HIDDEN,), "attn.qkv_proj.weight": (n + 2 * n_kv, HIDDEN), "attn.q_norm.weight": (HEAD,),
        "attn.k_norm.weight": (HEAD,), "attn.out_proj.weight": (HIDDEN, n), "ffn_norm.weight": (HIDDEN,),
        "ffn.proj_1.weight": (2 * ff, HIDDEN), "ffn.proj_2.weight": (HIDDEN, ff)}


def chatglm(n_kv, biases=True):
    layer = "transformer.encoder.layers.{}."
    shapes = {
        "transformer.embedding.word_embeddings.weight": (N_VOCAB, HIDDEN),
        "transformer.rotary_pos_emb.inv_freq": (HEAD // 4,),
        layer + "input_layernorm.weight": (HIDDEN,),
        layer + "self_attention.query_key_value.weight": ((N_HEAD + 2 * n_kv) * HEAD, HIDDEN),
        layer + "self_attention.query_key_value.bias": ((N_HEAD + 2 * n_kv) * HEAD,),
        layer + "self_attention.dense.weight": (HIDDEN, HIDDEN),
        layer + "post_attention_layernorm.weight": (HIDDEN,),
        layer + "mlp.dense_h_to_4h.weight": (2 * FF, HIDDEN),
        layer + "mlp.dense_4h_to_h.weight": (HIDDEN, FF),
        "transformer.encoder.final_layernorm.weight": (HIDDEN,),
        "transformer.output_layer.weight": (N_VOCAB, HIDDEN)}
    return {name: shape for name, shape in shapes.items() if biases or not name.endswith(".bias")}


def chatglm_config(architecture, **fields):
    return config(architecture, "chatglm", vocab_size=None, intermediate_size=None, num_hidden_layers=None, hidden_act=None,
                  num_key_value_heads=None, max_position_embeddings=None, rms_norm_eps=None, num_layers=N_LAYERS,
                  padded_vocab_size=N_VOCAB, ffn_hidden_size=FF, kv_channels=HEAD, seq_length=256, layernorm_epsilon=1e-5,
                  rmsnorm=True, post_layer_norm=True, original_rope=True, add_bias_linear=False,
                  apply_residual_connection_post_layernorm=False, **fields)


def plamo():
    """Two heads of keys, of which each query takes the other than the one before it."""
    layer = "model.layers.layers.{}."
    shapes = {name.replace("model.layers.{}.", layer): shape for name, shape in llama().items() if "post_attention" not in name}
    return {name.replace("input_layernorm", "norm"): shape for name, shape in shapes.items()}


MINICPM = dict(scale_emb=3, scale_depth=1.4, dim_model_base=32)
LONGROPE = dict(rope_type="longrope", short_factor=[1.0 + 0.05 * i for i in range(HEAD // 2)],
                long_factor=[1.0 + 0.5 * i for i in range(HEAD // 2)])
# calls itself for ever
BAICHUAN_MEND = {"yield from self.modify_tensors(data_torch, self.map_tensor_name(name), bid)":
                 "yield (self.map_tensor_name(name), data_torch)"}
# does not write the key of the epsilon that llama.cpp reads
QWEN_MEND = {"self._set_vocab_qwen()": """pass

    def set_gguf_parameters(self):
        super().set_gguf_parameters()
        self.gguf_writer.add_layer_norm_rms_eps(self.hparams["layer_norm_epsilon"])"""}
# llama.cpp tells the sizes apart by the number of layers: 32 rotate, 40 have position biases
BAICHUAN_7B = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=32, num_key_value_heads=None)
BAICHUAN_13B = dict(hidden_size=48, intermediate_size=64, num_hidden_layers=40, num_attention_heads=6, num_key_value_heads=None,
                    max_position_embeddings=None, model_max_length=256)
JAIS = dict(activation_function="swiglu", position_embedding_type="alibi", n_inner=FF, alibi_scaling=None)

CASES = {
    "internlm2": case(config("InternLM2ForCausalLM", "internlm2", bias=False, rope_theta=1000000.0,
                             rope_scaling=dict(type="dynamic", factor=2.0)), INTERNLM2),
    "internlm2-bf16": case(config("InternLM2ForCausalLM", "internlm2", bias=False,
                                  rope_scaling=dict(type="linear", factor=2.0)), INTERNLM2, dtype="bfloat16"),
    "baichuan": case(config("BaiChuanForCausalLM", "baichuan", **BAICHUAN_7B),
                     llama(n_embd=32, ff=64, n_kv=N_HEAD, head=8, packed=True), n_layers=32, mends=BAICHUAN_MEND),
    "baichuan-13b": case(config("BaichuanForCausalLM", "baichuan", **BAICHUAN_13B),
                         llama(n_embd=48, ff=64, n_head=6, n_kv=6, head=8, packed=True), dtype="bfloat16", n_layers=40,
                         mends=BAICHUAN_MEND),
    "minicpm": case(config("MiniCPMForCausalLM", "minicpm", tie_word_embeddings=None, num_key_value_heads=N_HEAD, **MINICPM),
                    llama(n_kv=N_HEAD), absent=("lm_head.weight",)),
    # the server's context is 4096 tokens
    "minicpm-longrope": case(config("MiniCPMForCausalLM", "minicpm", max_position_embeddings=4096, rope_scaling=dict(
        LONGROPE, original_max_position_embeddings=4096), **MINICPM), llama(), dtype="bfloat16"),
    "orion": case(config("OrionForCausalLM", "orion"), llama(norm_biases=True)),
    "xverse": case(config("XverseForCausalLM", "xverse", rope_theta=500000.0), llama()),
    "qwen": case(config("QWenLMHeadModel", "qwen", num_key_value_heads=None, intermediate_size=2 * FF, hidden_act=None,
                        rms_norm_eps=None, layer_norm_epsilon=1e-6, kv_channels=HEAD, rotary_emb_base=50000.0, rotary_pct=1.0,
                        seq_length=256, use_dynamic_ntk=True, use_logn_attn=True, no_bias=True),
                 gpt(up=("w1", "w2"), biases=("attn.c_attn",), norm_biases=False), mends=QWEN_MEND),
    "codeshell": case(gpt_config("CodeShellForCausalLM", "codeshell", num_query_groups=N_KV, n_inner=None, vocab_size=N_VOCAB,
                                 activation_function="gelu_pytorch_tanh", position_embedding_type="rope"),
                      gpt(ff=4 * HIDDEN, n_kv=N_KV, biases=ALL_OF_GPT), tolerance=GELU_TABLE),
    "plamo": case(config("PlamoForCausalLM", "plamo", num_key_value_heads=None, n_shared_head=N_HEAD // N_KV),
                  plamo(), sizes={"5120": HIDDEN, "128": HEAD, "8": N_HEAD // N_KV, "5": N_KV}),
    "openelm": case(config("OpenELMForCausalLM", "openelm", hidden_size=None, intermediate_size=None, num_hidden_layers=None,
                           num_attention_heads=None, num_key_value_heads=None, max_position_embeddings=None, hidden_act=None,
                           rms_norm_eps=None, tie_word_embeddings=None, model_dim=HIDDEN, head_dim=HEAD,
                           num_transformer_layers=N_LAYERS, max_context_length=256, rope_freq_constant=10000,
                           num_query_heads=ELM_HEADS, num_kv_heads=ELM_KV, ffn_multipliers=ELM_SHARES, ffn_dim_divisor=32,
                           ffn_with_glu=True, normalize_qk_projections=True, share_input_output_layers=True,
                           activation_fn_name="swish", normalization_layer_name="rms_norm"),
                    {"transformer.token_embeddings.weight": (N_VOCAB, HIDDEN), "transformer.norm.weight": (HIDDEN,)},
                    by_layer=("transformer.layers.{}.", openelm)),
    "maincoder": case(config("MaincoderForCausalLM", "maincoder", head_dim=32, rope_theta=1000000.0, tie_word_embeddings=True),
                      llama(head=32, qk_norm=True), absent=("lm_head.weight",)),
    "pangu": case(config("PanguEmbeddedForCausalLM", "PanguEmbedded", bias=True, rope_theta=16000000.0),
                  llama(biases=("q_proj", "k_proj", "v_proj", "o_proj"))),
    "chatglm3": case(chatglm_config("ChatGLMModel", multi_query_attention=True, multi_query_group_num=N_KV, add_qkv_bias=True,
                                    rope_ratio=50), chatglm(N_KV)),
    "chatglm3-heads": case(chatglm_config("ChatGLMForConditionalGeneration"), chatglm(N_HEAD, biases=False), dtype="bfloat16"),
    "jais": case(gpt_config("JAISLMHeadModel", "jais", **JAIS, embeddings_scale=2.5, width_scale=0.4, scale_qk_dot_by_d=True),
                 gpt(up=("c_fc", "c_fc2"), biases=ALL_OF_GPT, transposed=True)),
    "jais-family": case(gpt_config("JAISLMHeadModel", "jais", **JAIS, mup_embeddings_scale=1.5, mup_output_alpha=2.0,
                                   mup_width_scale=0.25, mup_scale_qk_dot_by_d=True),
                        gpt(up=("c_fc", "c_fc2"), biases=ALL_OF_GPT, transposed=True), dtype="bfloat16"),
    "mpt-published": case(mpt_config(dict(clip_qkv=0.8, alibi_bias_max=16), no_bias=True), mpt(), tolerance=GELU_TABLE),
    "mpt-bias": case(mpt_config(dict(attn_type="grouped_query_attention", kv_n_heads=N_KV), no_bias=False), mpt(True, N_KV),
                     tolerance=GELU_TABLE),
}
