// SPDX-License-Identifier: MIT
// The machine's limits: sizes that nothing divides, and products that are checked before timing.
#include "bench/machine_limits.h"

#include <gtest/gtest.h>

#include "bench/gemm_peak.h"
#include "bench/int8_peak.h"
#include "bench/memory_bandwidth.h"
#include "tests/support/processor.h"

namespace snapkv {
namespace {

TEST(MachineLimitsTest, EveryPartOfTheMemoryIsReadOnce) {
  // The function itself checks the sum of the words that were read.
  for (const int n_threads : {1, 2, 3, 7}) {
    for (const size_t words : {1, 5, 16, 17, 100003}) {
      EXPECT_GT(measure_read_bandwidth(words * 8, n_threads, 2), 0) << n_threads << " " << words;
    }
  }
}

TEST(MachineLimitsTest, ReferenceProductsAreExact) {
  const auto backend = Backend::make({.device = "reference"});
  const GemmSpeed speed = measure_gemm(*backend, {.n_tokens = 5, .n_in = 96, .n_out = 33}, 1);
  EXPECT_EQ(speed.max_error, 0);
  EXPECT_GT(speed.flops_per_second, 0);
}

TEST(MachineLimitsTest, CpuProductsAreExactInBothTypes) {
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    if (!test::runs(compute)) continue;
    const auto backend = Backend::make({.n_threads = 2, .compute = compute});
    // Products of multiples of 1/8 are exact with bf16 inputs and f32 sums.
    const GemmSpeed speed = measure_gemm(*backend, {.n_tokens = 40, .n_in = 160, .n_out = 96}, 1);
    EXPECT_EQ(speed.max_error, 0);
  }
}

// The function itself checks its products.
TEST(MachineLimitsTest, ThreadsMultiplyIntegersOfTheirOwn) {
  for (const int n_threads : {1, 3}) EXPECT_GT(measure_int8_products(n_threads, 1), 0);
}

TEST(MachineLimitsTest, AllRatesAreMeasuredButThoseThatTheProcessorHasNot) {
  const MachineLimits limits = measure_machine_limits(1);
  EXPECT_GT(limits.read, 0);
  EXPECT_GT(limits.f32, 0);
  EXPECT_GT(limits.int8, 0);
  EXPECT_EQ(limits.bf16 > 0, cpu_compute_dtype() == DType::bf16);
  EXPECT_GE(bytes_beyond_caches(), size_t{1} << 20);
}

}  // namespace
}  // namespace snapkv
