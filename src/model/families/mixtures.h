// SPDX-License-Identifier: MIT
// Rows of the table in families.cpp: families all of whose models are mixtures of experts, and that
// are not a variant of a dense family there.
#pragma once

#include <array>

#include "model/families/llama4.h"
#include "model/family.h"

namespace snapkv {

/// Family::own_keys of families whose last layers may guess further tokens.
inline constexpr std::array<std::string_view, 1> kDraftKeys = {"nextn_predict_layers"};

inline constexpr std::array kMixtures = {
    Family{.name = "glm4moe",
           .models = "GLM 4.5, 4.5 Air, 4.6 and 4.7",
           .own_keys = kDraftKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .qk_norm = QkNorm::each_head,
           .qk_norm_weights = Presence::optional,
           .ffn_norm_name = "post_attention_norm",
           .choice_bias = Presence::required,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .rope = RopeLayout::neox},

    Family{.name = "deepseek",
           .models = "DeepSeek MoE 16B",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .experts_normalized = false,
           .shared_output = SharedOutput::never},

    Family{.name = "bailingmoe",
           .models = "Ling 1",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .experts_normalized = false,
           .shared_output = SharedOutput::never},

    Family{.name = "ernie4_5-moe",
           .models = "ERNIE 4.5, mixtures of experts",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_sized},

    Family{.name = "hunyuan-moe",
           .models = "Hunyuan A13B",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_sized,
           .qk_norm = QkNorm::each_head,
           .qk_norm_after_rotation = true,
           .rope = RopeLayout::neox},

    Family{.name = "dots1",
           .models = "dots.llm1",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .qk_norm = QkNorm::each_head,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "bailingmoe2",
           .models = "Ling 2, Ring 2",
           .own_keys = kDraftKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .qk_norm = QkNorm::each_head,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "exaone-moe",
           .models = "K-EXAONE",
           .own_keys = kDraftKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .qk_norm = QkNorm::each_head,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .rotated = RotatedLayers::windows,
           .windows = {.full_every = 4}},

    Family{.name = "afmoe",
           .models = "Trinity",
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::if_counted,
           .norm_places = NormPlaces::both,
           .qk_norm = QkNorm::each_head,
           .choice_bias = Presence::required,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .rotated = RotatedLayers::windows,
           .windows = {.full_every = 4},
           .scales_embeddings = true,
           .attention_gate = true,
           .shared_output = SharedOutput::never},

    Family{.name = "dbrx",
           .models = "DBRX",
           .own_keys = kClampKeys,
           .experts = ExpertLayers::always,
           .norm = NormKind::layer,
           .ffn_norm_name = "attn_output_norm",
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "hy_v3",
           .models = "Hy3",
           .own_keys = kDraftKeys,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::alike,
           .qk_norm = QkNorm::each_head,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .rope = RopeLayout::neox},

    Family{.name = "mellum",
           .models = "Mellum 2",
           .experts = ExpertLayers::always,
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox,
           .windows = {.full_every = 4, .scaled = false},
           .shared_output = SharedOutput::never},

    Family{.name = "llama4",
           .models = "Llama 4 Scout and Maverick, text",
           .make_layers = make_llama4_layers,
           .experts = ExpertLayers::always,
           .shared_expert = SharedExpert::alike,
           .qk_norm_after_rotation = true,
           .expert_score = ExpertScore::sigmoid,
           .experts_normalized = false,
           .weighs_inputs = true,
           .temperature = {.scale = 0.1, .length = 8192, .offset = 1}},

    Family{.name = "phimoe",
           .models = "Phi 3.5 MoE, Phi mini MoE",
           .experts = ExpertLayers::always,
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .expert_score = ExpertScore::sparse_mixer,
           .experts_normalized = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "minimax-m2",
           .models = "MiniMax M2",
           .experts = ExpertLayers::always,
           .qk_norm = QkNorm::all_together,
           .choice_bias = Presence::required,
           .expert_score = ExpertScore::sigmoid,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},
};

}  // namespace snapkv
