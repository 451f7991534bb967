// SPDX-License-Identifier: MIT
// share_rows: a sequence's rows, shared out to the threads in pieces of neighbours.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

/// Values below which it is faster for one thread to compute rows.
inline constexpr int64_t kParallelRowValues = 16 * 1024;

/// Calls run(begin, end) for pieces of a sequence's rows, of d values each, by several threads if
/// they are worth it.
template <typename Run>
void share_rows(const CpuContext& ctx, const SequenceRows& rows, int64_t d, const Run& run) {
  const int64_t n = rows.end - rows.begin;
  const int64_t n_shares = n > 1 && n * d >= kParallelRowValues ? ctx.n_threads : 1;
#pragma omp parallel for num_threads(ctx.n_threads) if (n_shares > 1)
  for (int64_t share = 0; share < n_shares; ++share) {
    const int64_t begin = rows.begin + share * n / n_shares;
    const int64_t end = rows.begin + (share + 1) * n / n_shares;
    if (begin < end) run(begin, end);
  }
}

}  // namespace snapkv::cpu
