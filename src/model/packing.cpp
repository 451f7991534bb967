// SPDX-License-Identifier: MIT
#include "model/packing.h"

#include <algorithm>

namespace snapkv {
namespace {

/// Where nothing but the order of sums differs between the two ways.
struct PackedMinTokens {
  DType weights;
  int64_t n_tokens;
};
constexpr PackedMinTokens kPackedMinTokens[] = {
    {DType::q4_0, 64}, {DType::q4_k, 24},  {DType::q5_k, 24}, {DType::q6_k, 24},
    {DType::q8_0, 80}, {DType::bf16, 256}, {DType::f16, 192}, {DType::f32, 96}};

bool is_block_type(std::string_view file_type) {
  return std::any_of(kWeightTypes.begin(), kWeightTypes.end(), [&](DType t) {
    return file_type == name(t) && block_size(t) > 1;
  });
}

/// Not measured: project.cu multiplies 16 rows at a time and reads all weights for each 16.
constexpr int64_t kPackedMinTokensCuda = 33;

/// Measured: docs/performance.md.
constexpr int64_t kMostChunksPackedAtUse = 1;

}  // namespace

int64_t packed_min_tokens(std::string_view file_type, DType compute, Device device,
                          ByteProducts bytes) {
  if (device == Device::cuda) return kPackedMinTokensCuda;
  // project() rounds activations to 8 bits for block types, and keeps them for others
  const bool one_precision = compute == DType::f32 && (bytes == ByteProducts::none ||
                                                       !is_block_type(file_type));
  if (!one_precision) return 1;
  for (const PackedMinTokens& row : kPackedMinTokens) {
    if (file_type == name(row.weights)) return row.n_tokens;
  }
  return 80;
}

bool packed_products_in_bytes(ByteProducts bytes, std::string_view file_type) {
  return std::any_of(kWeightTypes.begin(), kWeightTypes.end(), [&](DType t) {
    return file_type == name(t) && packed_products_in_bytes(bytes, t);
  });
}

bool packs_at_use(int64_t n_tokens, int64_t chunk, Device device) {
  return device == Device::cpu && n_tokens <= kMostChunksPackedAtUse * chunk;
}

}  // namespace snapkv
