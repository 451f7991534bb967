// SPDX-License-Identifier: MIT
// AttentionVariant (ops.h) in the form that attention and vote kernels use. Their scores are in
// units of log 2: s is the score times log2(e).
#pragma once

#include <cmath>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/weight_store.h"
#include "backend/ops.h"

namespace snapkv::cuda {

struct DeviceVariant {
  int window;          // 0: none
  float cap;           // in these units; 0: none
  const float* sinks;  // [n_head], not in these units; nullptr: none

  /// cap * tanh(s / cap)
  __device__ __forceinline__ float capped(float s) const {
    return cap > 0.0f ? cap * tanhf(s / cap) : s;
  }
  /// The first key that a query sees; `own` is the query's own key.
  __device__ __forceinline__ int first_seen(int own) const {
    return window > 0 ? max(0, own + 1 - window) : 0;
  }
  /// Query head h's sink in units of log 2; -inf if there is none.
  __device__ __forceinline__ float sink(int h) const {
    return sinks != nullptr ? sinks[h] * kLog2E : -INFINITY;
  }
};

inline DeviceVariant make_variant(Context& ctx, const AttentionVariant& v) {
  DeviceVariant out{static_cast<int>(v.window), v.softcap * kLog2E, nullptr};
  if (v.sinks) out.sinks = static_cast<const float*>(ctx.weights().on_device(v.sinks).data);
  return out;
}

/// Adds a sink, as one more column, to a softmax with maximum `max` and sum `sum`; returns the
/// factor for its values. `unit`: how much a probability of 1 adds to the sum.
__device__ __forceinline__ float with_sink(float sink, float& max, float& sum, float unit = 1.0f) {
  if (sink == -INFINITY) return 1.0f;
  const float both = fmaxf(max, sink), factor = exp2f(max - both);
  sum = sum * factor + unit * exp2f(sink - both);
  max = both;
  return factor;
}

}  // namespace snapkv::cuda
