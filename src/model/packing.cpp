// SPDX-License-Identifier: MIT
#include "model/packing.h"

#include <limits>

namespace snapkv {
namespace {

/// The 8-bit products stay faster, however long the prompt.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct PackedMinTokens {
  DType weights;
  int64_t bf16, f32;       // by compute type
  int64_t avx2, avx_vnni;  // f32 by ByteProducts
};
constexpr PackedMinTokens kPackedMinTokens[] = {
    {DType::q4_0, 192, 64, kNever, kNever}, {DType::q4_k, 96, 24, kNever, kNever},
    {DType::q5_k, 72, 24, 384, kNever},     {DType::q6_k, 112, 24, 384, kNever},
    {DType::q8_0, 80, 80, 384, 256},        {DType::bf16, 80, 256, 256, 256},
    {DType::f16, 40, 192, 192, 192},        {DType::f32, 32, 96, 96, 96}};

/// Not measured: project.cu multiplies 16 rows at a time, and reads all weights for each.
constexpr int64_t kPackedMinTokensCuda = 33;

/// Measured: docs/performance.md.
constexpr int64_t kMostChunksPackedAtUse = 1;

}  // namespace

int64_t packed_min_tokens(std::string_view file_type, DType compute, Device device,
                          ByteProducts bytes) {
  if (device == Device::cuda) return kPackedMinTokensCuda;
  for (const PackedMinTokens& row : kPackedMinTokens) {
    if (file_type != name(row.weights)) continue;
    if (compute == DType::bf16) return row.bf16;
    if (bytes == ByteProducts::avx2) return row.avx2;
    return bytes == ByteProducts::avx_vnni ? row.avx_vnni : row.f32;
  }
  return 80;
}

bool packs_at_use(int64_t n_tokens, int64_t chunk, Device device) {
  return device == Device::cpu && n_tokens <= kMostChunksPackedAtUse * chunk;
}

}  // namespace snapkv
