// SPDX-License-Identifier: MIT
// The check that `snapkv bench` makes before it times anything: the speed of kernels that compute
// the wrong values means nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "snapkv/engine.h"

namespace snapkv::cli {

struct BenchCheck {
  std::string what = "none";  ///< "reference (33 tokens), prefill against decode (33 tokens)"
  double max_difference = 0;  ///< of log-probabilities: the larger of the two comparisons
  double tolerance = 0;
};

/// Compares the log-probabilities that `model` computes for short random prompts:
/// - models of up to 200 M parameters: with those of the reference device, which runs plain loops;
/// - all models: those of a whole prompt (packed weights) with those of its beginning continued by
///   decode steps (weights in the file's type), n_seq sequences at once.
/// Throws Error{kRuntime} when a token differs by more than the tolerance (where activations are
/// rounded: half of them) or is not finite.
BenchCheck check_model(const std::shared_ptr<const Model>& model, DType kv_type, int64_t n_seq,
                       uint64_t seed, const ProgressFn& progress);

}  // namespace snapkv::cli
