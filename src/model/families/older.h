// SPDX-License-Identifier: MIT
// Rows of the table in families.cpp: dense families of before 2024 that people still have.
#pragma once

#include <array>

#include "model/family.h"

namespace snapkv {

inline constexpr std::array kOlder = {
    Family{.name = "starcoder",
           .models = "StarCoder 1, SantaCoder",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::gelu_tanh,
           .names_activation = true,
           .gated = false,
           .rotated = RotatedLayers::none},

    Family{.name = "gptneox",
           .models = "GPT-NeoX, Pythia, Dolly 2, RedPajama INCITE",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .parallel_if_flagged = true,
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::gelu_tanh,
           .names_activation = true,
           .gated = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "falcon",
           .models = "Falcon 7B, 40B, 180B, Falcon 2",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .parallel = true,
           .may_have_second_norm = true,
           .activation = Activation::gelu_tanh,
           .names_activation = true,
           .gated = false,
           .rope = RopeLayout::neox},

    Family{.name = "phi2",
           .models = "Phi 1, 1.5 and 2",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .parallel = true,
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .logits_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::gelu_tanh,
           .names_activation = true,
           .gated = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "codeshell",
           .models = "CodeShell 7B",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::gelu_tanh,
           .gated = false,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "orion",
           .models = "Orion 14B",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "olmo",
           .models = "OLMo 1",
           .own_keys = kClampKeys,
           .norm = NormKind::layer,
           .plain_norms = true},

    Family{.name = "qwen",
           .models = "Qwen 1 of 2023",
           .qkv_bias = Presence::required,
           .counts_both = true,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "plamo",
           .models = "PLaMo 13B",
           .parallel = true,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::never},

    Family{.name = "openelm",
           .models = "OpenELM",
           .qk_norm = QkNorm::each_head,
           .rope = RopeLayout::neox,
           .shared_output = SharedOutput::always},

    Family{.name = "xverse", .models = "XVERSE 7B to 65B", .shared_output = SharedOutput::never},

    Family{.name = "chatglm", .models = "ChatGLM 3, GLM 4 9B of 2024", .fused_gate = true},
};

}  // namespace snapkv
