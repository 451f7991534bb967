// SPDX-License-Identifier: MIT
#include "model/packing.h"

#include <algorithm>

namespace snapkv {
namespace {

struct PackedMinTokens {
  DType weights;
  int64_t bf16, f32;  // by compute type
};
constexpr PackedMinTokens kPackedMinTokens[] = {
    {DType::q4_0, 192, 64}, {DType::q4_k, 96, 24},  {DType::q5_k, 72, 24}, {DType::q6_k, 112, 24},
    {DType::q8_0, 80, 80},  {DType::bf16, 80, 256}, {DType::f16, 40, 192}, {DType::f32, 32, 96}};

/// Packed products in bytes, whatever the compute type. With AVX-512 VNNI the bound is higher
/// because project() is faster, above all for the types that take it the fewest instructions.
constexpr int64_t kByteMinTokens = 24;
constexpr int64_t kVnniByteMinTokens = 32;
constexpr int64_t kVnniFastByteMinTokens = 64;
int64_t byte_min_tokens(std::string_view file_type, ByteProducts bytes) {
  if (bytes != ByteProducts::avx512_vnni) return kByteMinTokens;
  const bool fast = file_type == name(DType::q8_0) || file_type == name(DType::q4_0);
  return fast ? kVnniFastByteMinTokens : kVnniByteMinTokens;
}

/// Not measured: project.cu multiplies 16 rows at a time and reads all weights for each 16.
constexpr int64_t kPackedMinTokensCuda = 33;

/// Measured: docs/performance.md.
constexpr int64_t kMostChunksPackedAtUse = 1;

}  // namespace

int64_t packed_min_tokens(std::string_view file_type, DType compute, Device device,
                          ByteProducts bytes) {
  if (device == Device::cuda) return kPackedMinTokensCuda;
  if (packed_products_in_bytes(bytes, file_type)) return byte_min_tokens(file_type, bytes);
  for (const PackedMinTokens& row : kPackedMinTokens) {
    if (file_type == name(row.weights)) return compute == DType::bf16 ? row.bf16 : row.f32;
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
