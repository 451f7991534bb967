// SPDX-License-Identifier: MIT
// SnapKV's score, for "snapkv" and for the policies that only share its budget out otherwise.
#pragma once

#include <cstdint>
#include <span>

#include "policy/policy.h"

namespace snapkv {

/// Votes of the window's queries for the rows before it, reduced over each group, then pooled.
void snapkv_score(Backend& backend, const PolicyConfig& config, const PolicyInput& input,
                  std::span<const int32_t> n_prefix,
                  const Tensor& scores  // [n_head_kv, max(n_prefix)] f32
);

}  // namespace snapkv
