// SPDX-License-Identifier: MIT
#include "backend/cuda/cuda_ops.h"
#include "base/check.h"

namespace snapkv::cuda {
void store_rows(Context&, const Tensor&, DType, std::span<void* const>) { SNAPKV_CHECK(false); }
void store_positions(Context&, std::span<const int32_t>, std::span<int32_t* const>) {
  SNAPKV_CHECK(false);
}
void gather_rows(Context&, const Tensor&, const Tensor&, std::span<const int32_t>,
                 std::span<void* const>) {
  SNAPKV_CHECK(false);
}
void convert_rows(Context&, const RowConversion&) { SNAPKV_CHECK(false); }
}  // namespace snapkv::cuda
