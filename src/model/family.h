// SPDX-License-Identifier: MIT
// Family: in what a family of decoders differs from Llama, one row per general.architecture. The
// rows are in families.cpp; model_spec.cpp and decoder.cpp read them.
#pragma once

#include <span>
#include <string_view>

#include "backend/ops.h"

namespace snapkv {

/// Whether a tensor must be in the file.
enum class Presence { optional, required };

/// The defaults are Llama's (arXiv 2302.13971): RMS norms before attention and before the
/// feed-forward network, rotation of neighbouring pairs, grouped-query attention, SwiGLU.
struct Family {
  std::string_view name;    // general.architecture
  std::string_view models;  // who people know it by

  RopeLayout rope = RopeLayout::norm;
  Presence qkv_bias = Presence::optional;
};

std::span<const Family> families();
/// Throws Error{kBadModel} naming what is not supported.
const Family& find_family(const class GgufFile& file);

}  // namespace snapkv
