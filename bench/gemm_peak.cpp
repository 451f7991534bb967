// SPDX-License-Identifier: MIT
#include "bench/gemm_peak.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "base/half.h"
#include "base/timer.h"

namespace snapkv {
namespace {

constexpr int64_t kCheckedEntries = 64;

/// Multiples of 1/8 in [-1, 1): exact in bf16; sums of a few thousand products are exact in f32.
std::vector<float> small_values(int64_t n, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) {
    seed = seed * 1664525u + 1013904223u;  // the generator of Numerical Recipes
    v = static_cast<float>(static_cast<int>(seed >> 28) - 8) / 8.0f;
  }
  return values;
}

double largest_error(const GemmShape& s, const std::vector<float>& x, const std::vector<float>& w,
                     const float* out) {
  double largest = 0;
  for (int64_t i = 0; i < kCheckedEntries; ++i) {
    const int64_t row = i * 7919 % s.n_tokens, col = i * 104729 % s.n_out;
    double sum = 0;
    for (int64_t k = 0; k < s.n_in; ++k) {
      sum += double{x[static_cast<size_t>(row * s.n_in + k)]} *
             double{w[static_cast<size_t>(col * s.n_in + k)]};
    }
    largest = std::max(largest, std::abs(sum - out[row * s.n_out + col]));
  }
  return largest;
}

}  // namespace

GemmSpeed measure_gemm(Backend& backend, const GemmShape& s, int repetitions) {
  std::vector<float> x = small_values(s.n_tokens * s.n_in, 1),
                     w = small_values(s.n_out * s.n_in, 2);
  std::vector<bf16_t> x16;
  for (const float v : x) x16.push_back(to_bf16(v));
  const bool bf16 = backend.compute_dtype() == DType::bf16;
  const Tensor input(bf16 ? static_cast<void*>(x16.data()) : x.data(), backend.compute_dtype(),
                     {s.n_tokens, s.n_in});
  std::vector<float> product(static_cast<size_t>(s.n_tokens * s.n_out));
  const Tensor out(product.data(), DType::f32, {s.n_tokens, s.n_out});
  PackedWeight packed;
  ops::pack(backend, Tensor(w.data(), DType::f32, {s.n_out, s.n_in}), packed);

  GemmSpeed speed;
  const auto multiply = [&] { ops::project_packed(backend, input, packed, {}, out, false); };
  multiply();
  speed.max_error = largest_error(s, x, w, product.data());
  if (!(speed.max_error < 1e-2)) {
    fail(ErrorCode::kRuntime, "{}: a product of [{}, {}] and [{}, {}] is wrong by {}: not timed",
         backend.description(), s.n_tokens, s.n_in, s.n_in, s.n_out, speed.max_error);
  }
  const double flops = 2.0 * static_cast<double>(s.n_tokens) * static_cast<double>(s.n_in) *
                       static_cast<double>(s.n_out);
  for (int r = 0; r < repetitions; ++r) {
    const Timer timer;
    multiply();
    speed.flops_per_second = std::max(speed.flops_per_second, flops / timer.seconds());
  }
  return speed;
}

}  // namespace snapkv
