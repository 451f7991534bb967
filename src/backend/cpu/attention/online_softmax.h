// SPDX-License-Identifier: MIT
// The running state of one softmax-weighted sum, so that it can be computed in pieces (Milakov and
// Gimelshein, arXiv 1805.02867; the merge is FlashInfer's). The tiles of attention_tile_*.cpp keep
// the same state in arrays.
#pragma once

#include <cmath>
#include <limits>

namespace snapkv::cpu {

/// max = max(s), sum = sum(2^(s - max)) over the scores s seen so far, in log2 units. acc, if there
/// is one, is the sum of 2^(s - max) * v; the caller of update or merge scales it.
struct OnlineSoftmax {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;

  void init() { *this = OnlineSoftmax(); }

  /// Factors that bring the old and the newly merged accumulation to the common maximum.
  struct Factors {
    float self = 1.0f;
    float other = 1.0f;
  };

  /// An empty side has max = -inf and sum = 0. Its factor is 0, never 2^(-inf - -inf) = NaN.
  Factors merge(const OnlineSoftmax& b) {
    const float m = std::fmax(max, b.max);
    const Factors f{max == m ? 1.0f : std::exp2(max - m), b.max == m ? 1.0f : std::exp2(b.max - m)};
    sum = sum * f.self + b.sum * f.other;
    max = m;
    return f;
  }

  /// The factor for acc at the end. The sum of a softmax over at least one finite score is at least
  /// 1, so 0 means that there were no scores: the result is then 0, not NaN. A sum that is NaN
  /// stays NaN, so that damaged scores do not look like no scores.
  float normalize() const { return sum != 0.0f ? 1.0f / sum : 0.0f; }
};

}  // namespace snapkv::cpu
