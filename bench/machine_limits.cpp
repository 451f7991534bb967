// SPDX-License-Identifier: MIT
#include "bench/machine_limits.h"

#include <unistd.h>

#include <algorithm>

#include "bench/gemm_peak.h"
#include "bench/int8_peak.h"
#include "bench/memory_bandwidth.h"

namespace snapkv {
namespace {

constexpr int kRepetitions = 3;
constexpr GemmShape kShape = {.n_tokens = 512, .n_in = 2048, .n_out = 2048};

double measure_products(int n_threads, Compute compute) {
  const auto backend = Backend::make({.device = "cpu", .n_threads = n_threads, .compute = compute});
  return measure_gemm(*backend, kShape, kRepetitions).flops_per_second;
}

// Returns 0 if the system does not tell.
size_t system_bytes(int name) {
  const long value = sysconf(name);
  return value > 0 ? static_cast<size_t>(value) : 0;
}

}  // namespace

size_t bytes_beyond_caches() {
  constexpr size_t kLeast = size_t{256} << 20, kMost = size_t{1} << 30;
  const size_t wanted = std::clamp(2 * system_bytes(_SC_LEVEL3_CACHE_SIZE), kLeast, kMost);
  const size_t memory = system_bytes(_SC_PHYS_PAGES) * system_bytes(_SC_PAGESIZE);
  return memory > 0 ? std::min(wanted, memory / 4) : wanted;
}

MachineLimits measure_machine_limits(int n_threads) {
  MachineLimits limits;
  limits.read = measure_read_bandwidth(bytes_beyond_caches(), n_threads, kRepetitions);
  limits.f32 = measure_products(n_threads, Compute::f32);
  if (cpu_compute_dtype() == DType::bf16) {
    limits.bf16 = measure_products(n_threads, Compute::bf16);
  }
  limits.int8 = measure_int8_products(n_threads, kRepetitions);
  return limits;
}

}  // namespace snapkv
