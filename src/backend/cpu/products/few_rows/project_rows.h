// SPDX-License-Identifier: MIT
// project_rows(): project() where each projection multiplies some of the rows, as experts do.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/cpu_context.h"
#include "backend/ops.h"

namespace snapkv::cpu {

struct RowRange {
  int64_t begin = 0, end = 0;
};

/// out[i, :] = w x[rows.begin + i, :] (+ bias) for each projection and its range, rows[k] of
/// projections[k]. Its scratch memory is project_workspace() of the same arguments.
void project_rows(const CpuContext& ctx, const Tensor& x, std::span<const Projection> projections,
                  std::span<const RowRange> rows);

}  // namespace snapkv::cpu
