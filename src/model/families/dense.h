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
};

}  // namespace snapkv
