// SPDX-License-Identifier: MIT
#include "model/packing.h"

namespace snapkv {
namespace {

struct PackedMinTokens {
  DType weights;
  int64_t bf16, f32;  // by compute type
};
constexpr PackedMinTokens kPackedMinTokens[] = {
    {DType::q4_0, 192, 64}, {DType::q4_k, 96, 24},  {DType::q5_k, 72, 24}, {DType::q6_k, 112, 24},
    {DType::q8_0, 80, 80},  {DType::bf16, 80, 256}, {DType::f16, 40, 192}, {DType::f32, 32, 96}};

/// Not measured: project.cu multiplies 16 rows at a time, and reads all weights for each.
constexpr int64_t kPackedMinTokensCuda = 33;

}  // namespace

int64_t packed_min_tokens(std::string_view file_type, DType compute, Device device) {
  if (device == Device::cuda) return kPackedMinTokensCuda;
  for (const PackedMinTokens& row : kPackedMinTokens) {
    if (file_type == name(row.weights)) return compute == DType::bf16 ? row.bf16 : row.f32;
  }
  return 80;
}

}  // namespace snapkv
