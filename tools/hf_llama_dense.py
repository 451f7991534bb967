# SPDX-License-Identifier: MIT
"""Cases of hf_llama_oracle.py: dense models. A case is the config.json and the tensors, with {} for a layer's number."""

HIDDEN, FF, HEAD, N_HEAD, N_KV, N_LAYERS, N_VOCAB = 64, 160, 16, 4, 2, 4, 320


def case(config, tensors, dtype="float32", n_layers=N_LAYERS, absent=()):
    """absent: names that a case lacks although others of its kind have them."""
    return dict(config=dict(config, torch_dtype=dtype), tensors=tensors, dtype=dtype, n_layers=n_layers, absent=absent)


def config(architecture, model_type, **fields):
    """The fields that most classes have; None leaves one of them out."""
    every = dict(
        architectures=[architecture], model_type=model_type, vocab_size=N_VOCAB, hidden_size=HIDDEN, intermediate_size=FF,
        num_hidden_layers=N_LAYERS, num_attention_heads=N_HEAD, num_key_value_heads=N_KV, max_position_embeddings=256,
        hidden_act="silu", rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
    every.update(fields)
    return {name: value for name, value in every.items() if value is not None}


# ---- InternLM 2: queries, keys and values of a group of heads in one matrix ----
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

CASES = {
    "internlm2": case(config("InternLM2ForCausalLM", "internlm2", bias=False, rope_theta=1000000.0,
                             rope_scaling=dict(type="dynamic", factor=2.0)), INTERNLM2),
}
