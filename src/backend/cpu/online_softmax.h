// SPDX-License-Identifier: MIT
// The running state of one softmax-weighted sum, so that it can be computed in pieces (Milakov and
// Gimelshein, arXiv 1805.02867; the merge is FlashInfer's). Used by attention_decode.cpp and
// window_votes.cpp; the tiles of attention_tile_*.cpp keep the same state in arrays.
#pragma once

#include <cmath>
#include <limits>

namespace snapkv::cpu {

/// max = max(s), sum = sum(2^(s - max)) over the scores s seen so far, in log2 units; acc, where
/// there is one, is the sum of 2^(s - max) * v and is scaled by whoever calls update or merge.
struct OnlineSoftmax {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;

  void init() { *this = OnlineSoftmax(); }

  /// Factors that bring the old accumulation and the newly merged one to the common maximum.
  struct Factors {
    float self = 1.0f;
    float other = 1.0f;
  };

  /// An empty side has max = -inf and sum = 0; its factor is 0, never 2^(-inf - -inf) = NaN.
  Factors merge(const OnlineSoftmax& b) {
    const float m = std::fmax(max, b.max);
    const Factors f{max == m ? 1.0f : std::exp2(max - m), b.max == m ? 1.0f : std::exp2(b.max - m)};
    sum = sum * f.self + b.sum * f.other;
    max = m;
    return f;
  }

  /// What acc is multiplied with at the end. The sum of a softmax over at least one finite score is
  /// at least 1, so 0 means that nothing was seen: the result is then 0, not NaN. A sum that is NaN
  /// stays NaN: damaged scores must not look like none.
  float normalize() const { return sum != 0.0f ? 1.0f / sum : 0.0f; }
};

}  // namespace snapkv::cpu
