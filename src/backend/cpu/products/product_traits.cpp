// SPDX-License-Identifier: MIT
// Which of project() and project_packed() is faster, and what they round. Packing takes about as
// long as reading the weights twice, and pays where the product library is faster than the kernels
// that read the file's type.
#include "backend/cpu/cpu_ops.h"

namespace snapkv::cpu {
namespace {

/// Measured (docs/weights.md), where nothing but the order of sums differs between the two.
struct PackedMinTokens {
  DType weights;
  int64_t n_tokens;
};
constexpr PackedMinTokens kPackedMinTokens[] = {
    {DType::q4_0, 64}, {DType::q4_k, 24},  {DType::q5_k, 24}, {DType::q6_k, 24},
    {DType::q8_0, 80}, {DType::bf16, 256}, {DType::f16, 192}, {DType::f32, 96}};
constexpr int64_t kPackedMinTokensOfOthers = 80;

int64_t packed_min_tokens(const CpuContext& ctx, DType weight) {
  // project() rounds activations to 8 bits for block types, and keeps them for others
  const bool rounds = ctx.byte_products != ByteProducts::none && block_size(weight) > 1;
  if (ctx.compute != DType::f32 || rounds) return 1;
  for (const PackedMinTokens& row : kPackedMinTokens) {
    if (row.weights == weight) return row.n_tokens;
  }
  return kPackedMinTokensOfOthers;
}

}  // namespace

ProductTraits product_traits(const CpuContext& ctx, DType weight) {
  return {.packed_min_tokens = packed_min_tokens(ctx, weight),
          .packed_in_bytes = packed_products_in_bytes(ctx.byte_products, weight),
          .packs_at_use = true};
}

}  // namespace snapkv::cpu
