// SPDX-License-Identifier: MIT
// Test models with mixers of Mamba and Mamba-2. llama.cpp reads jamba and granitehybrid only where
// the mixer is twice as wide as the model.
#include <string>
#include <utility>

#include "tests/support/family_model_parts.h"

namespace snapkv::test {
namespace {

RandomFamily hybrid(std::string architecture, RandomFamily::Mamba2 mamba2) {
  RandomFamily family;
  family.architecture = std::move(architecture);
  family.mamba2 = std::move(mamba2);
  return family;
}

FamilyModel model_with(std::string name, RandomFamily family) {
  const std::string& pattern =
      family.mamba.n_channel > 0 ? family.mamba.pattern : family.mamba2.pattern;
  const auto n_layer = static_cast<int64_t>(pattern.size());
  return model_of(std::move(name), shape_of(std::move(family), n_layer));
}

}  // namespace

std::vector<FamilyModel> with_mamba() {
  RandomFamily jamba;
  jamba.architecture = "jamba";
  jamba.mamba = {.n_channel = 128, .d_state = 16, .step_rank = 24, .pattern = "mm*mm"};
  RandomFamily experts = jamba;
  experts.mamba.pattern = "m*mm*";
  experts.mamba.expert_layers = {1, 3};
  experts.own_output = true;
  experts.n_expert = 6;
  experts.n_expert_used = 2;
  RandomFamily mamba;
  mamba.architecture = "mamba";
  mamba.mamba = {.n_channel = 128,
                 .d_state = 16,
                 .step_rank = 4,
                 .pattern = "mmm",
                 .normed = false,
                 .alone = true};
  RandomFamily falcon = mamba;
  falcon.mamba.step_rank = 24;
  falcon.own_output = true;
  falcon.keys = {{"ssm.dt_b_c_rms", true}};
  RandomFamily mamba2 = hybrid("mamba2", {.n_group = 2,
                                          .n_head = 4,
                                          .d_state = 24,
                                          .d_head = 32,
                                          .pattern = "MMM",
                                          .parts_apart = true});
  RandomFamily plamo2;
  plamo2.architecture = "plamo2";
  plamo2.norm_after = plamo2.bare_post_norms = true;
  plamo2.qk_norm = RandomQkNorm::own_weights;
  plamo2.fused_qkv = plamo2.fused_gate = true;
  plamo2.mamba = {
      .n_channel = 128, .d_state = 24, .step_rank = 64, .pattern = "m*mm*m", .n_head = 4};
  return {model_with("plamo2", plamo2),      model_with("jamba", jamba),
          model_with("jamba-moe", experts),  model_with("mamba", mamba),
          model_with("mamba-norms", falcon), model_with("mamba2", mamba2)};
}

std::vector<FamilyModel> with_mamba2() {
  RandomFamily granite = hybrid(
      "granitehybrid", {.n_group = 1, .n_head = 4, .d_state = 16, .d_head = 32, .pattern = "M*MM"});
  granite.keys = {{"rope.scaling.finetuned", false},
                  {"attention.scale", 0.3},
                  {"embedding_scale", 3.0},
                  {"residual_scale", 0.7},
                  {"logit_scale", 2.0}};
  RandomFamily granitemoe = granite;
  granitemoe.mamba2 = {.n_group = 2, .n_head = 8, .d_state = 24, .d_head = 16, .pattern = "*M*M*"};
  granitemoe.n_expert = 10;
  granitemoe.n_expert_used = 3;
  granitemoe.n_ff_shared = 64;
  RandomFamily bamba = hybrid("granitehybrid", granitemoe.mamba2);
  bamba.own_output = true;

  RandomFamily nemotron = hybrid("nemotron_h", {.n_group = 2,
                                                .n_head = 4,
                                                .d_state = 16,
                                                .d_head = 32,
                                                .pattern = "M-M*-M-",
                                                .parts_apart = true});
  nemotron.gated = false;
  nemotron.keys = {
      {"attention.layer_norm_epsilon", 1e-5}};  // llama.cpp wants it, and does not use it
  nemotron.own_output = true;
  RandomFamily moe = nemotron;
  moe.architecture = "nemotron_h_moe";
  moe.own_output = false;
  moe.mamba2.pattern = "-MM*-M*";
  moe.n_expert = 12;
  moe.n_expert_used = 4;
  moe.n_ff_dense = 96;
  moe.n_ff_shared = 160;
  moe.choice_bias = true;
  moe.keys.push_back({"expert_weights_norm", true});
  moe.keys.push_back({"expert_weights_scale", 1.7});
  RandomFamily latent = moe;
  latent.n_latent = 32;
  latent.mamba2.pattern = "M-*-";
  RandomFamily scales = moe;
  scales.mamba2.pattern = "M-*-";
  scales.matrix_scales = true;
  RandomFamily draft = moe;
  draft.mamba2.pattern = "M*-M";
  draft.n_draft_layer = 1;
  draft.ffn_norm_is_post_attention = true;  // in that layer, which has both parts

  RandomFamily falcon = hybrid(
      "falcon-h1",
      {.n_group = 1, .n_head = 4, .d_state = 16, .d_head = 24, .pattern = "+++", .normed = false});
  falcon.bare_ffn_norm = true;
  RandomFamily falcon_norm = hybrid(
      "falcon-h1", {.n_group = 2, .n_head = 8, .d_state = 24, .d_head = 16, .pattern = "++"});
  falcon_norm.own_output = true;
  falcon_norm.bare_ffn_norm = true;
  return {model_with("granitehybrid", granite),
          model_with("granitehybrid-moe", granitemoe),
          model_with("bamba", bamba),
          model_with("nemotron_h", nemotron),
          model_with("nemotron_h_moe", moe),
          model_with("nemotron_h_moe-latent", latent),
          model_with("nemotron_h_moe-draft", draft),
          model_with("nemotron_h_moe-scales", scales),
          model_with("falcon-h1", falcon),
          model_with("falcon-h1-norm", falcon_norm)};
}

}  // namespace snapkv::test
