// SPDX-License-Identifier: MIT
// Rejects scores and norms that are NaN or infinite, before rows are ranked by them.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"

namespace snapkv {

/// Throws Error{kRuntime} naming layer, KV head and row of the first score that is not finite in
/// scores[h, 0 .. n_prefix[h]) of [n_head_kv, most rows] f32.
void require_finite_scores(Backend& backend, int il, std::span<const int32_t> n_prefix,
                           const Tensor& scores);

/// The same for the scores of one head, on the host.
void require_finite_scores(int il, int64_t head, std::span<const float> scores);

/// Same for the norms of projected values, of heads that do not keep all rows (k[h] < n_prefix[h]).
void require_finite_norms(Backend& backend, int il, std::span<const int32_t> n_prefix,
                          std::span<const int32_t> k, const Tensor& norms);

}  // namespace snapkv
