// SPDX-License-Identifier: MIT
// Rows of scores, keys and values on the host, for policies whose arithmetic is too small to be an
// op. Used by the policies of this folder.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace snapkv {

/// Rows read at once, so that a long prompt's keys are never copied whole.
constexpr int64_t kHostRows = 256;

/// Rows [begin, end) of head h of `kv` ([n_head_kv, capacity, head_dim], any stride) as f32:
/// [end - begin, head_dim].
std::vector<float> read_rows(Backend& backend, const Tensor& kv, int64_t h, int64_t begin,
                             int64_t end);

/// The first n scores of head h.
std::vector<float> read_scores(Backend& backend, const Tensor& scores, int64_t h, int32_t n);
void write_scores(Backend& backend, const Tensor& scores, int64_t h, std::span<const float> row);

}  // namespace snapkv
