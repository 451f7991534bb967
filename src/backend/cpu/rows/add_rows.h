// SPDX-License-Identifier: MIT
// A part of op add_rows for kernels that share out their work themselves.
#pragma once

#include <cstdint>
#include <span>

#include "base/tensor.h"

namespace snapkv::cpu {

/// x[rows[t]] += factors[t] y[t] as add_rows() computes it, by the calling thread alone.
void add_rows_alone(const Tensor& x, const Tensor& y, std::span<const int32_t> rows,
                    std::span<const float> factors);

}  // namespace snapkv::cpu
