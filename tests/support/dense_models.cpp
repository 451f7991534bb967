// SPDX-License-Identifier: MIT
// Random models of dense families (family_models.h).
#include <utility>

#include "tests/support/family_model_parts.h"

namespace snapkv::test {
namespace {

/// With smaller matrices, for models with many layers.
RandomModelShape narrow(RandomModelShape shape) {
  shape.n_embd = shape.n_ff = 32;
  shape.head_dim = 8;
  return shape;
}

std::vector<FamilyModel> glm4s() {
  const auto glm4 = [](bool bias, bool sections) {
    return shape_of({.architecture = "glm4",
                     .n_rot = 8,
                     .norm_after = true,
                     .qkv_bias = bias,
                     .fused_gate = true,
                     .own_output = !bias,
                     .sections = sections});
  };
  return {model_of("glm4", glm4(true, false)), model_of("glm4-sections", glm4(false, true))};
}

/// With feed-forward networks that add little, so that many layers do not add up roundings to bf16.
FamilyModel with_small_steps(FamilyModel m) {
  m.options.gains->ffn_post_norm = 0.25f;
  return m;
}

/// llama.cpp gives windows to models with 64 layers only.
std::vector<FamilyModel> exaones() {
  const auto exaone4 = [](int64_t n_layer, int64_t window) {
    RandomModelShape shape = shape_of({.architecture = "exaone4",
                                       .norm_before = false,
                                       .norm_after = true,
                                       .qk_norm = RandomQkNorm::each_head,
                                       .own_output = window > 0,
                                       .rope_freqs = true,
                                       .window = window},
                                      n_layer);
    return n_layer > 10 ? narrow(shape) : shape;
  };
  return {model_of("exaone", shape_of({.architecture = "exaone", .rope_freqs = true})),
          model_of("exaone4", exaone4(3, 0)),
          with_small_steps(model_of("exaone4-window", exaone4(64, 16)))};
}

std::vector<FamilyModel> hunyuans_and_ernies() {
  return {model_of("hunyuan-dense",
                   shape_of({.architecture = "hunyuan-dense", .qk_norm = RandomQkNorm::each_head},
                            3, 32)),
          model_of("ernie4_5", shape_of({.architecture = "ernie4_5"})),
          model_of("seed_oss", shape_of({.architecture = "seed_oss",
                                         .qkv_bias = true,
                                         .own_output = true,
                                         .ffn_norm_is_post_attention = true}))};
}

/// llama.cpp takes a Baichuan for a 7B, which rotates, if it has 32 layers.
FamilyModel baichuan() {
  RandomModelShape shape = shape_of({.architecture = "baichuan", .own_output = true}, 32);
  shape.n_head_kv = shape.n_head;
  return model_of("baichuan", narrow(shape));
}

/// Without gates: the square, or a square and an exponential, of what is above and below 0.
std::vector<FamilyModel> with_other_activations() {
  RandomFamily arcee{.architecture = "arcee", .gated = false, .own_output = true};
  RandomFamily apertus{.architecture = "apertus",
                       .qk_norm = RandomQkNorm::each_head,
                       .gated = false,
                       .own_output = true,
                       .rope_freqs = true,
                       .xielu = true};
  RandomFamily nemotron{.architecture = "nemotron",
                        .n_rot = 8,
                        .layer_norm = true,
                        .norm_bias = true,
                        .gated = false,
                        .own_output = true};
  return {model_of("arcee", shape_of(arcee)), model_of("apertus", shape_of(apertus)),
          model_of("nemotron", shape_of(nemotron))};
}

std::vector<FamilyModel> bitnets() {
  RandomFamily silu{.architecture = "bitnet", .sub_norms = true};
  RandomFamily relu2 = silu;
  relu2.keys = {{"hidden_activation", "relu2"}};
  return {model_of("bitnet", shape_of(silu)), model_of("bitnet-relu2", shape_of(relu2))};
}

/// Layers without attention, with a matrix in its place, and with neither attention nor network.
FamilyModel deci() {
  RandomFamily family{
      .architecture = "deci",
      .own_output = true,
      .rope_freqs = true,
      .layer_sizes = {{4, 2, 96}, {4, 0, 160}, {0, 0, 64}, {4, 1, 32}, {0, 0, 0}, {4, 4, 128}}};
  return model_of("deci", shape_of(std::move(family), 6));
}

std::vector<FamilyModel> families_of_2025() {
  RandomModelShape jais2 = shape_of({.architecture = "jais2",
                                     .layer_norm = true,
                                     .norm_bias = true,
                                     .qkv_bias = true,
                                     .output_bias = true,
                                     .ffn_bias = true,
                                     .gated = false});
  jais2.n_head_kv = jais2.n_head;
  return {model_of("maincoder",
                   shape_of({.architecture = "maincoder", .qk_norm = RandomQkNorm::each_head})),
          model_of("pangu-embedded", shape_of({.architecture = "pangu-embedded",
                                               .qkv_bias = true,
                                               .output_bias = true,
                                               .own_output = true})),
          model_of("jais2", jais2),
          model_of("plamo3", shape_of({.architecture = "plamo3",
                                       .norm_after = true,
                                       .qk_norm = RandomQkNorm::each_head,
                                       .fused_qkv = true,
                                       .fused_gate = true,
                                       .bare_post_norms = true,
                                       .window = 16,
                                       .keys = {{"attention.sliding_window_pattern", int64_t{3}},
                                                {"rope.freq_base_swa", 5e3}}},
                                      4, 32))};
}

/// With smaller queries than others: llama.cpp's rotation by sections differs from the one without
/// by more than rounding does elsewhere.
FamilyModel with_sections(std::string name, RandomFamily family) {
  family.architecture = name;
  family.sections = true;
  FamilyModel m = model_of(std::move(name), shape_of(std::move(family), 3, 16));
  m.shape.rope_base = 1e6;
  m.options.gains->qkv = 1.0f;
  return m;
}

std::vector<FamilyModel> that_see_pictures() {
  return {with_sections("qwen2vl", {.qkv_bias = true}), with_sections("paddleocr", {}),
          with_sections("hunyuan_vl", {.qk_norm = RandomQkNorm::each_head,
                                       .keys = {{"rope.scaling.alpha", 50.0}}})};
}

/// Nearly all tokens are pictures'; one model has its norms after the blocks.
std::vector<FamilyModel> chameleons() {
  const auto chameleon = [](std::string name, bool after) {
    RandomModelShape shape = shape_of({.architecture = "chameleon",
                                       .qk_norm = RandomQkNorm::own_weights,
                                       .qk_norm_bias = true,
                                       .own_output = true,
                                       .keys = {{"swin_norm", after}}});
    shape.n_vocab = 8196 + kFamilyVocab;
    return model_of(std::move(name), shape);
  };
  return {chameleon("chameleon", false), chameleon("chameleon-swin", true)};
}

}  // namespace

std::vector<FamilyModel> more_dense_models() {
  std::vector<FamilyModel> all = {
      model_of("minicpm", shape_of({.architecture = "minicpm",
                                    .keys = {{"embedding_scale", 3.0},
                                             {"residual_scale", 0.5},
                                             {"logit_scale", 2.0}}})),
      baichuan(),
      deci(),
      model_of("qwen3vl", shape_of({.architecture = "qwen3vl",
                                    .qk_norm = RandomQkNorm::each_head,
                                    .sections = true,
                                    .keys = {{"n_deepstack_layers", int64_t{2}}}},
                                   3, 32)),
      model_of("talkie", shape_of({.architecture = "talkie",
                                   .plain_norms = true,
                                   .qk_norm = RandomQkNorm::query_gains,
                                   .adds_embeddings = true,
                                   .own_output = true,
                                   .keys = {{"logit_scale", 0.7}}})),
  };
  for (auto&& some :
       {chameleons(), glm4s(), exaones(), hunyuans_and_ernies(), with_other_activations(),
        bitnets(), families_of_2025(), that_see_pictures()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace snapkv::test
