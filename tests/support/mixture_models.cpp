// SPDX-License-Identifier: MIT
// Random models of families with experts (family_models.h).
#include <utility>

#include "tests/support/family_model_parts.h"

namespace snapkv::test {
namespace {

/// What most of them have: some of many experts, and layers without.
RandomFamily mixture(std::string architecture) {
  return {.architecture = std::move(architecture),
          .qk_norm = RandomQkNorm::each_head,
          .n_expert = 12,
          .n_expert_used = 3,
          .n_ff_dense = 160};
}

/// Scores are sigmoids, whose sum is divided by and which are then scaled; a bias helps to choose.
RandomFamily with_sigmoids(RandomFamily family) {
  family.choice_bias = true;
  family.keys = {{"expert_gating_func", int64_t{2}},
                 {"expert_weights_norm", true},
                 {"expert_weights_scale", 1.5}};
  return family;
}

FamilyModel glm4moe() {
  RandomFamily family = with_sigmoids(mixture("glm4moe"));
  family.n_rot = 8;
  family.qkv_bias = true;
  family.own_output = true;
  family.ffn_norm_is_post_attention = true;
  family.n_dense_layers = 1;
  family.n_ff_shared = 192;
  family.n_shared = 2;
  family.n_draft_layer = 1;
  return model_of("glm4moe", shape_of(std::move(family)));
}

/// GLM 4.5 Air has no norms of queries and keys.
FamilyModel glm4moe_air() {
  RandomFamily family = with_sigmoids(mixture("glm4moe"));
  family.qk_norm = RandomQkNorm::none;
  family.n_rot = 8;
  family.ffn_norm_is_post_attention = true;
  family.n_ff_shared = 96;
  family.n_shared = 1;
  family.n_dense_layers = 1;
  family.keys[1].value = false;  // the sum stays as it is
  return model_of("glm4moe-air", shape_of(std::move(family)));
}

FamilyModel hy3() {
  RandomFamily family = with_sigmoids(mixture("hy_v3"));
  family.bare_choice_bias = true;
  family.n_dense_layers = 1;
  family.n_ff_shared = 128;
  family.n_draft_layer = 1;
  return model_of("hy_v3", shape_of(std::move(family)));
}

FamilyModel ernie() {
  RandomFamily family = mixture("ernie4_5-moe");
  family.qk_norm = RandomQkNorm::none;
  family.choice_bias = true;
  family.own_output = true;
  family.n_dense_layers = 1;
  family.expert_step = 1;
  family.n_ff_shared = 192;
  family.keys = {{"expert_shared_count", int64_t{2}}};
  return model_of("ernie4_5-moe", shape_of(std::move(family)));
}

FamilyModel hunyuan() {
  RandomFamily family = mixture("hunyuan-moe");
  family.n_ff_dense = 96;
  family.n_ff_shared = 96;
  family.keys = {{"expert_shared_count", int64_t{1}}};
  return model_of("hunyuan-moe", shape_of(std::move(family)));
}

FamilyModel dots1() {
  RandomFamily family = with_sigmoids(mixture("dots1"));
  family.own_output = true;
  family.n_dense_layers = 1;
  family.n_ff_shared = 192;
  family.n_shared = 2;
  RandomModelShape shape = shape_of(std::move(family));
  shape.n_head_kv = shape.n_head;
  return model_of("dots1", shape);
}

FamilyModel ling() {
  RandomFamily family = with_sigmoids(mixture("bailingmoe2"));
  family.n_rot = 8;
  family.fused_qkv = true;
  family.own_output = true;
  family.n_dense_layers = 1;
  family.n_ff_shared = 96;
  family.n_shared = 1;
  family.keys.push_back({"expert_group_count", int64_t{4}});
  family.keys.push_back({"expert_group_used_count", int64_t{2}});
  return model_of("bailingmoe2", shape_of(std::move(family)));
}

FamilyModel exaone() {
  RandomFamily family = with_sigmoids(mixture("exaone-moe"));
  family.own_output = true;
  family.n_dense_layers = 1;
  family.n_ff_shared = 96;
  family.n_shared = 1;
  family.window = 16;
  FamilyModel m = model_of("exaone-moe", shape_of(std::move(family), 5));
  m.options.gains->ffn = 0.8f;  // in bf16, few tokens go to other experts
  return m;
}

FamilyModel afmoe() {
  RandomFamily family = with_sigmoids(mixture("afmoe"));
  family.norm_after = true;
  family.attention_gate = true;
  family.own_output = true;
  family.n_dense_layers = 1;
  family.n_ff_shared = 96;
  family.n_shared = 1;
  family.window = 16;
  FamilyModel m = model_of("afmoe", shape_of(std::move(family), 5));
  m.options.gains->embedding = 0.05f;  // which are multiplied by sqrt(n_embd) = 8
  m.options.gains->ffn_post_norm = 0.5f;
  return m;
}

FamilyModel minimax() {
  RandomFamily family = mixture("minimax-m2");
  family.n_rot = 8;
  family.qk_norm = RandomQkNorm::all_together;
  family.own_output = true;
  family.choice_bias = true;
  family.n_ff_dense = 96;
  family.keys = {{"expert_gating_func", int64_t{2}}};
  return model_of("minimax-m2", shape_of(std::move(family)));
}

/// Every second layer has experts, and the fourth sees all tokens. `keys`: how long chunks are, and
/// from where on queries grow.
FamilyModel llama4(std::string name, std::vector<RandomKey> keys) {
  RandomFamily family{.architecture = "llama4",
                      .own_output = true,
                      .rope_freqs = true,
                      .n_expert = 8,
                      .n_expert_used = 1,
                      .n_ff_dense = 160,
                      .n_ff_shared = 96,
                      .expert_step = 2,
                      .keys = std::move(keys)};
  FamilyModel m = model_of(std::move(name), shape_of(std::move(family), 6));
  m.options.gains->ffn = 2.0f;  // experts read little of what they would without their weights
  return m;
}

FamilyModel phimoe() {
  RandomFamily family{.architecture = "phimoe",
                      .layer_norm = true,
                      .norm_bias = true,
                      .rms_epsilon = true,
                      .qkv_bias = true,
                      .output_bias = true,
                      .own_output = true,
                      .output_has_bias = true,
                      .long_factors = true,
                      .n_expert = 12,
                      .n_expert_used = 2,
                      .keys = {{"rope.scaling.attn_factor", 1.24},
                               {"rope.scaling.original_context_length", int64_t{64}},
                               {"attention.sliding_window", int64_t{0}}}};
  return model_of("phimoe", shape_of(std::move(family)));
}

FamilyModel qwen3vlmoe() {
  RandomFamily family = mixture("qwen3vlmoe");
  family.sections = true;
  family.keys = {{"n_deepstack_layers", int64_t{2}}};
  return model_of("qwen3vlmoe", shape_of(std::move(family), 3, 32));
}

/// The first layer has no experts, though no key says so.
FamilyModel mimo() {
  RandomFamily family{.architecture = "mimo2",
                      .n_rot = 8,
                      .own_output = true,
                      .n_expert = 12,
                      .n_expert_used = 3,
                      .choice_bias = true,
                      .n_ff_dense = 160,
                      .n_dense_layers = 1,
                      .names_dense_layers = false,
                      .layer_sizes = {{4, 1, 160}, {4, 2, 160}, {4, 2, 160}, {4, 1, 160}},
                      .window_layers = {1, 2},
                      .window_sinks = true,
                      .value_dim = 16,
                      .window = 16,
                      .keys = {{"rope.freq_base_swa", 5e3}, {"attention.value_scale", 0.7}}};
  RandomModelShape shape = shape_of(std::move(family), 4, 24);
  shape.rope_base = 1e6;
  return model_of("mimo2", shape);
}

/// Layers with windows have more heads, and rotate all of each; the file's factors are for half, in
/// the other layers. Some limit gates.
FamilyModel step() {
  RandomFamily family{.architecture = "step35",
                      .qk_norm = RandomQkNorm::each_head,
                      .own_output = true,
                      .rope_freqs = true,
                      .head_gates = true,
                      .expert_limits = {0, 0, 0.6f, 0.4f},
                      .shared_limits = {0.5f, 0, 0, 0.3f},
                      .n_expert = 12,
                      .n_expert_used = 3,
                      .choice_bias = true,
                      .n_ff_dense = 160,
                      .n_dense_layers = 1,
                      .names_dense_layers = false,
                      .n_ff_shared = 96,
                      .layer_sizes = {{4, 2, 160}, {6, 2, 160}, {6, 2, 160}, {4, 2, 160}},
                      .window_layers = {1, 2},
                      .window = 16,
                      .keys = {{"rope.freq_base_swa", 5e3},
                               {"expert_weights_norm", true},
                               {"expert_weights_scale", 1.7},
                               {"expert_gating_func", int64_t{2}}}};
  RandomModelShape shape = shape_of(std::move(family), 4, 32);
  shape.rope_base = 1e6;
  return model_of("step35", shape);
}

/// With windows, YaRN elsewhere and a gate for each head; and without, with a gate for each value.
std::vector<FamilyModel> lagunas() {
  RandomFamily values{.architecture = "laguna",
                      .qk_norm = RandomQkNorm::each_head,
                      .own_output = true,
                      .attention_gate = true,
                      .n_expert = 12,
                      .n_expert_used = 3,
                      .choice_bias = true,
                      .n_ff_dense = 160,
                      .n_dense_layers = 1,
                      .n_ff_shared = 96,
                      .keys = {{"expert_weights_norm", true}, {"expert_weights_scale", 2.5}}};
  RandomFamily heads = values;
  heads.n_rot = 16;
  heads.attention_gate = false;
  heads.head_gates = true;
  heads.layer_sizes = {{4, 2, 160}, {6, 2, 160}, {6, 2, 160}, {6, 2, 160}, {4, 2, 160}};
  heads.window = 16;
  for (const RandomKey& key :
       {RandomKey{"rope.freq_base_swa", 1e4}, RandomKey{"rope.dimension_count_swa", int64_t{32}},
        RandomKey{"rope.scaling.type", "yarn"}, RandomKey{"rope.scaling.factor", 8.0},
        RandomKey{"rope.scaling.original_context_length", int64_t{512}}}) {
    heads.keys.push_back(key);
  }
  RandomModelShape shape = shape_of(heads, 5, 32);
  shape.rope_base = 5e5;
  return {model_of("laguna", shape), model_of("laguna-values", shape_of(values, 4, 32))};
}

/// With windows, longer than the tests' texts as llama.cpp takes them to be, and without.
std::vector<FamilyModel> smallthinkers() {
  RandomFamily plain{.architecture = "smallthinker",
                     .own_output = true,
                     .n_expert = 12,
                     .n_expert_used = 4,
                     .n_ff_dense = 96,
                     .keys = {{"expert_gating_func", int64_t{2}}}};
  RandomFamily windows = plain;
  windows.own_output = false;
  windows.window = 4096;
  return {model_of("smallthinker", shape_of(plain)),
          model_of("smallthinker-windows", shape_of(windows, 5))};
}

/// With layer norms and with RMS norms, and the first layer of every three without a window.
std::vector<FamilyModel> commands() {
  RandomFamily family = with_sigmoids(mixture("cohere2moe"));
  family.layer_norm = true;
  family.ffn_norm = false;
  family.qk_norm = RandomQkNorm::none;
  family.choice_bias = false;
  family.n_dense_layers = 1;
  family.n_ff_shared = 192;
  family.n_shared = 2;
  family.window = 16;
  family.keys.push_back({"logit_scale", 0.5});
  family.keys.push_back({"attention.sliding_window_pattern", int64_t{3}});
  RandomFamily rms = family;
  rms.layer_norm = false;
  return {model_of("cohere2moe", shape_of(family, 5)),
          model_of("cohere2moe-rms", shape_of(rms, 5))};
}

/// Dense, and with experts and a shared one.
std::vector<FamilyModel> granites_with_windows() {
  RandomFamily dense{.architecture = "granite_swa",
                     .sinks = true,
                     .window_layers = {0, 1, 3},
                     .rotated_layers = {true, true, false, true},
                     .window = 16,
                     .keys = {{"attention.scale", 0.4},
                              {"embedding_scale", 3.0},
                              {"residual_scale", 0.5},
                              {"logit_scale", 2.0}}};
  RandomFamily experts = dense;
  experts.own_output = true;
  experts.n_expert = 8;
  experts.n_expert_used = 3;
  experts.n_ff_shared = 128;
  experts.fused_shared_gate = true;
  experts.rotated_layers.clear();
  return {model_of("granite_swa", shape_of(dense, 4)),
          model_of("granite_swa-moe", shape_of(experts, 4))};
}

/// Experts share adjugates; experts that read what the layer reads.
std::vector<FamilyModel> with_more_than_experts() {
  RandomFamily grove = mixture("grovemoe");
  grove.own_output = true;
  grove.n_expert_used = 4;
  grove.n_adjugate_group = 2;
  grove.n_ff_adjugate = 48;
  grove.keys = {{"expert_group_scale", 0.4}};
  RandomFamily arctic{.architecture = "arctic",
                      .own_output = true,
                      .n_expert = 12,
                      .n_expert_used = 2,
                      .early_experts = true};
  return {model_of("grovemoe", shape_of(grove)), model_of("arctic", shape_of(arctic))};
}

/// DeepSeek's first mixture, under the name of one that sees pictures.
FamilyModel deepseek_ocr() {
  RandomFamily family{.architecture = "deepseek2-ocr",
                      .n_expert = 12,
                      .n_expert_used = 3,
                      .n_ff_dense = 160,
                      .n_dense_layers = 1,
                      .n_ff_shared = 192,
                      .n_shared = 2};
  RandomModelShape shape = shape_of(std::move(family));
  shape.n_head_kv = shape.n_head;
  return model_of("deepseek2-ocr", shape);
}

/// Grok 2, with a dense network, and Grok 1, whose header has none of the scales.
std::vector<FamilyModel> groks() {
  RandomFamily one{
      .architecture = "grok", .own_output = true, .n_expert = 8, .n_expert_used = 2, .grok = true};
  RandomFamily two = one;
  two.own_output = false;
  two.n_ff_dense = 160;
  two.keys = {{"embedding_scale", 3.0},
              {"logit_scale", 0.5},
              {"attention.output_scale", 0.3},
              {"attn_logit_softcapping", 3.0},
              {"router_logit_softcapping", 3000.0},
              {"final_logit_softcapping", 5.0},
              {"rope.scaling.type", "yarn"},
              {"rope.scaling.factor", 16.0},
              {"rope.scaling.original_context_length", int64_t{64}},
              {"rope.scaling.yarn_ext_factor", 1.0},
              {"rope.scaling.yarn_attn_factor", 1.0},
              {"rope.scaling.yarn_beta_fast", 8.0},
              {"rope.scaling.yarn_beta_slow", 1.0}};
  std::vector<FamilyModel> all = {model_of("grok-1", shape_of(one)),
                                  model_of("grok", shape_of(two))};
  all[0].options.gains->embedding = 0.005f;  // which are multiplied by 78
  all[0].options.gains->qkv = 3.0f;          // scores are multiplied by 0.088
  // llama.cpp computes GELU from a table in f16, so the networks add little
  for (FamilyModel& m : all) m.options.gains->ffn_post_norm = 0.12f;
  return all;
}

FamilyModel mellum() {
  return model_of("mellum",
                  shape_of({.architecture = "mellum",
                            .qk_norm = RandomQkNorm::each_head,
                            .own_output = true,
                            .n_expert = 8,
                            .n_expert_used = 3,
                            .n_ff_dense = 128,
                            .window = 16,
                            .keys = {{"rope.scaling.type", "yarn"},
                                     {"rope.scaling.factor", 8.0},
                                     {"rope.scaling.original_context_length", int64_t{512}}}},
                           4, 32));
}

}  // namespace

std::vector<FamilyModel> more_mixtures() {
  // llama.cpp has chunks of 8192 tokens whatever the file says: the second one's golden is
  // transformers'
  const std::vector<RandomKey> short_chunks = {{"attention.sliding_window", int64_t{16}},
                                               {"attention.temperature_scale", 0.4},
                                               {"attention.temperature_length", int64_t{12}}};
  std::vector<FamilyModel> all = granites_with_windows();
  for (const FamilyModel& m : commands()) all.push_back(m);
  for (const FamilyModel& m : lagunas()) all.push_back(m);
  for (const FamilyModel& m : smallthinkers()) all.push_back(m);
  for (const FamilyModel& m : with_more_than_experts()) all.push_back(m);
  for (const FamilyModel& m : groks()) all.push_back(m);
  for (const FamilyModel& m :
       {glm4moe(), glm4moe_air(), ernie(), hunyuan(), dots1(), ling(), exaone(), afmoe(), minimax(),
        phimoe(), llama4("llama4", {}), llama4("llama4-chunks", short_chunks), qwen3vlmoe(), hy3(),
        deepseek_ocr(), mellum(), mimo(), step()}) {
    all.push_back(m);
  }
  return all;
}

}  // namespace snapkv::test
