// SPDX-License-Identifier: MIT
// Rows of the table in families.cpp: further dense families.
#pragma once

#include <array>

#include "model/families/deci.h"
#include "model/family.h"

namespace snapkv {

inline constexpr std::array kDense = {
    Family{.name = "deci",
           .models = "Llama Nemotron Super and Ultra, Nemotron 51B, DeciLM",
           .make_layers = make_deci_layers},

    Family{.name = "bitnet",
           .models = "BitNet b1.58",
           .names_activation = true,
           .rope = RopeLayout::neox,
           .sub_norms = true,
           .shared_output = SharedOutput::always},

    Family{.name = "maincoder",
           .models = "Maincoder 1B",
           .qk_norm = QkNorm::each_head,
           .qk_norm_after_rotation = true},

    Family{.name = "pangu-embedded",
           .models = "openPangu Embedded 1B and 7B",
           .output_bias = Presence::required,
           .rope = RopeLayout::neox},

    Family{.name = "jais2",
           .models = "Jais 2",
           .norm = NormKind::layer,
           .norm_bias = Presence::required,
           .qkv_bias = Presence::required,
           .output_bias = Presence::required,
           .ffn_bias = Presence::required,
           .activation = Activation::relu_squared,
           .gated = false,
           .rope = RopeLayout::neox},

    Family{.name = "plamo3",
           .models = "PLaMo 3",
           .norm_places = NormPlaces::both,
           .qk_norm = QkNorm::each_head,
           .fused_gate = true,
           .rope = RopeLayout::neox,
           .windows = {.full_every = 8, .freq_base = 1e4, .scaled = false}},

    // text only: of models that also see pictures
    Family{.name = "paddleocr", .models = "PaddleOCR VL, text", .rope = RopeLayout::neox},

    Family{.name = "hunyuan_vl",
           .models = "Hunyuan OCR and VL, text",
           .qk_norm = QkNorm::each_head,
           .qk_norm_after_rotation = true,
           .rope = RopeLayout::neox,
           .stretches_base = true},
};

}  // namespace snapkv
