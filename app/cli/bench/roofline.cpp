// SPDX-License-Identifier: MIT
#include "cli/bench/roofline.h"

#include "base/check.h"

namespace snapkv::cli {
namespace {

double rate_of(Products products, const MachineLimits& limits) {
  switch (products) {
    case Products::int8:
      return limits.int8;
    case Products::bf16:
      return limits.bf16;
    default:
      return limits.f32;
  }
}

bool has_blocks(std::string_view file_type) {
  return file_type != snapkv::name(DType::f32) && file_type != snapkv::name(DType::f16) &&
         file_type != snapkv::name(DType::bf16);
}

}  // namespace

const char* name(Products products) {
  switch (products) {
    case Products::int8:
      return "int8";
    case Products::bf16:
      return "bf16";
    default:
      return "f32";
  }
}

Products compute_products(DType compute, const MachineLimits& limits) {
  return compute == DType::bf16 && limits.bf16 > 0 ? Products::bf16 : Products::f32;
}

Products direct_products(std::string_view file_type, bool rounds_activations,
                         const MachineLimits& limits) {
  if (!rounds_activations) return Products::f32;
  if (has_blocks(file_type)) return Products::int8;
  const bool bf16 = file_type == snapkv::name(DType::bf16) && limits.bf16 > 0;
  return bf16 ? Products::bf16 : Products::f32;
}

LeastTime least_time(const BenchWork& work, const MachineLimits& limits) {
  const double linear_rate = rate_of(work.linear_products, limits);
  const double attention_rate = rate_of(work.attention_products, limits);
  SNAPKV_CHECK(linear_rate > 0 && attention_rate > 0 && limits.read > 0);
  return {.compute = work.linear / linear_rate + work.attention / attention_rate,
          .memory = work.bytes / limits.read};
}

}  // namespace snapkv::cli
