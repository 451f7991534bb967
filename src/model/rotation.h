// SPDX-License-Identifier: MIT
// How a layer rotates queries and keys by their position (RoPE, arXiv 2104.09864), with the scaling
// of long contexts. Read from metadata by model_spec.cpp; decoder.cpp computes the frequencies.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/ops.h"

namespace snapkv {

class MetadataReader;

struct RotationSpec {
  int64_t n_rot = 0;  // values of a head that are rotated; 0: no rotation
  RopeLayout layout = RopeLayout::norm;
  double freq_base = 1e4;
  double linear_factor = 1.0;  // positions are divided by it

  bool operator==(const RotationSpec&) const = default;
};

/// Throws Error{kBadModel} naming the key whose value is not supported.
RotationSpec read_rotation(const MetadataReader& reader, RopeLayout layout, int64_t head_dim);

/// [n_rot / 2]: freq_base^(-2i / n_rot) / (linear_factor * factors[i]). `factors` [n_rot / 2] come
/// from the file, or are empty.
std::vector<double> inverse_frequencies(const RotationSpec& spec, std::span<const float> factors);

}  // namespace snapkv
