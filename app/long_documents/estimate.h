// SPDX-License-Identifier: MIT
// How long reading a document in parts takes, from the times of short readings.
#pragma once

#include <cstdint>
#include <vector>

#include "long_documents/cut.h"
#include "snapkv/model_info.h"

namespace snapkv::long_documents {

/// A measured reading.
struct Reading {
  int64_t n_tokens = 0;
  double seconds = 0;
};

/// Seconds for reading `parts`, each by itself. A prompt of n tokens takes a + b n (1 + c n): `a`
/// for laying the weights out, b n for the matrix products, and b c n^2 for attention, whose share
/// follows from the model's sizes. Two readings of different lengths give a and b; `longer` is the
/// one with more tokens.
double estimate_seconds(const ModelInfo& model, const Reading& shorter, const Reading& longer,
                        const std::vector<TextPart>& parts);

}  // namespace snapkv::long_documents
