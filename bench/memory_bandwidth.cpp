// SPDX-License-Identifier: MIT
#include "bench/memory_bandwidth.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "base/check.h"
#include "base/timer.h"

namespace snapkv {
namespace {

/// Words summed side by side: two cache lines, so that additions never wait for each other and the
/// compiler can use the widest vectors. They are integers, so that their sum may be reordered.
constexpr size_t kLanes = 16;

uint64_t sum_words(const uint64_t* words, size_t n) {
  uint64_t lanes[kLanes] = {};
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  }
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum += lane;
  for (size_t i = whole; i < n; ++i) sum += words[i];
  return sum;
}

}  // namespace

double measure_read_bandwidth(size_t bytes, int n_threads, int repetitions) {
  SNAPKV_CHECK(n_threads > 0 && repetitions > 0);
  const auto n = static_cast<int64_t>(bytes / sizeof(uint64_t));
  const Buffer buffer = Buffer::host(bytes, "memory to read");
  auto* words = static_cast<uint64_t*>(buffer.data());
  const auto begin = [&](int t) { return n * t / n_threads; };
  // Each thread writes what it will read, so that its pages lie in its own part of the memory.
#pragma omp parallel for schedule(static, 1) num_threads(n_threads)
  for (int t = 0; t < n_threads; ++t)
    std::fill(words + begin(t), words + begin(t + 1), uint64_t{1});

  double best = 0;
  for (int r = 0; r < repetitions; ++r) {
    uint64_t sum = 0;
    const Timer timer;
#pragma omp parallel for schedule(static, 1) num_threads(n_threads) reduction(+ : sum)
    for (int t = 0; t < n_threads; ++t) {
      sum += sum_words(words + begin(t), static_cast<size_t>(begin(t + 1) - begin(t)));
    }
    const double seconds = timer.seconds();
    SNAPKV_CHECK(sum == static_cast<uint64_t>(n));  // also keeps the loop from being optimized away
    best = std::max(best, static_cast<double>(n) * sizeof(uint64_t) / seconds);
  }
  return best;
}

}  // namespace snapkv
