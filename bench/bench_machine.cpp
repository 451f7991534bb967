// SPDX-License-Identifier: MIT
// snapkv-bench-machine [THREADS [REPETITIONS [MIB]]]: measures the limits of this machine, memory
// reads and matrix products, with which the engine's own rates are compared (docs/performance.md).
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "backend/backend.h"
#include "base/error.h"
#include "bench/gemm_peak.h"
#include "bench/int8_peak.h"
#include "bench/memory_bandwidth.h"

namespace snapkv {
namespace {

constexpr GemmShape kShapes[] = {{512, 2048, 2048}, {512, 2048, 8192}, {512, 8192, 2048}};

int64_t number(const char* what, std::string_view text, int64_t min, int64_t max) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    fail(ErrorCode::kUsage, "{} is '{}'; it must be a number from {} to {}", what, text, min, max);
  }
  return value;
}

void print_gemm(int n_threads, Compute compute, int repetitions) {
  const auto backend = Backend::make({.n_threads = n_threads, .compute = compute});
  for (const GemmShape& s : kShapes) {
    const GemmSpeed speed = measure_gemm(*backend, s, repetitions);
    fmt::print("| {:>4} product [{}, {}] x [{}, {}] | {:8.1f} Gop/s |\n",
               name(backend->compute_dtype()), s.n_tokens, s.n_in, s.n_in, s.n_out,
               speed.flops_per_second / 1e9);
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  const auto argument = [&](int i, const char* what, int64_t initial, int64_t max) {
    return argc > i ? number(what, argv[i], 1, max) : initial;
  };
  const int all = Backend::make({})->n_threads();
  const int n_threads = static_cast<int>(argument(1, "THREADS", all, 4096));
  const int repetitions = static_cast<int>(argument(2, "REPETITIONS", 10, 100000));
  const int64_t mib = argument(3, "MIB", 1024, int64_t{1} << 24);
  fmt::print("{}; best of {}\n\n", Backend::make({.n_threads = n_threads})->description(),
             repetitions);
  fmt::print("| what | rate |\n| --- | ---: |\n");
  const double read =
      measure_read_bandwidth(static_cast<size_t>(mib) << 20, n_threads, repetitions);
  fmt::print("| memory read, {} MiB, {} threads | {:8.1f} GB/s |\n", mib, n_threads, read / 1e9);
  std::fflush(stdout);
  print_gemm(n_threads, Compute::f32, repetitions);
  if (cpu_compute_dtype() == DType::bf16) print_gemm(n_threads, Compute::bf16, repetitions);
  fmt::print("| int8 product, in the caches | {:8.1f} Gop/s |\n",
             measure_int8_products(n_threads, repetitions) / 1e9);
  return 0;
}

}  // namespace
}  // namespace snapkv

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (argc > 4 || first == "-h" || first == "--help") {
    fmt::print(stderr, "usage: snapkv-bench-machine [THREADS [REPETITIONS [MIB]]]\n");
    return argc > 4 ? 2 : 0;
  }
  try {
    return snapkv::run(argc, argv);
  } catch (const snapkv::Error& e) {
    fmt::print(stderr, "snapkv-bench-machine: {}\n", e.what());
    return static_cast<int>(e.code());
  }
}
