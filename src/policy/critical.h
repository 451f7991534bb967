// SPDX-License-Identifier: MIT
// PolicyConfig::critical (CriticalKV; Feng et al., arXiv 2502.03805): what dropping a row changes
// is its attention times what its value adds to the layer's output. Half of the rows are kept by
// attention alone; the rest compete by (attention + 1e-4) * ||W_o v||_1, the norm being averaged
// over the group's query heads. Called by the base of score policies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace snapkv {

/// Replaces `scores`, so that their k[h] highest are those rows. `n_queries`: how many queries'
/// attention a score sums up. Error{kUsage} without values or output projection.
void weigh_by_output(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
                     std::span<const int32_t> k, double n_queries,
                     const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
);

}  // namespace snapkv
