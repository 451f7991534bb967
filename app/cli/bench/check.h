// SPDX-License-Identifier: MIT
// What `snapkv bench` verifies before it times anything: kernels that compute something else are
// no faster.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "snapkv/engine.h"

namespace snapkv::cli {

struct BenchCheck {
  std::string what = "none";  ///< "reference (33 tokens), prefill against decode (33 tokens)"
  double max_difference = 0;  ///< of log-probabilities, over everything compared
  double tolerance = 0;
};

/// Compares the log-probabilities that `model` gives short random prompts:
/// - models of up to 200 M parameters with the reference device's, which runs plain loops;
/// - all models: a prompt's (packed weights) with those of its beginning (weights in the file's
///   type) continued by decode steps, n_seq sequences at once.
/// Throws Error{kRuntime} when they differ by more than the tolerance or aren't finite.
BenchCheck check_model(const std::shared_ptr<const Model>& model, DType kv_type, int64_t n_seq,
                       uint64_t seed, const ProgressFn& progress);

}  // namespace snapkv::cli
