// SPDX-License-Identifier: MIT
// The parts of policies' scores: norms, products and sums of KV rows, and arithmetic on scores;
// backend/ops.def defines them. Each op runs once per layer and is bound by memory rather than
// arithmetic, so convert.cpp's SIMD converts rows to f32 and the arithmetic is plain f64. One
// thread computes each row's result, which therefore does not depend on the number of threads.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/convert.h"

namespace snapkv::cpu {
namespace {

constexpr int64_t kBlock = 256;  // rows of a task
/// With fewer values, waking the other threads costs more than it saves.
constexpr int64_t kParallelValues = 16 * 1024;

int64_t longest(std::span<const int32_t> n) {
  return n.empty() ? 0 : *std::max_element(n.begin(), n.end());
}

/// Calls f(h, begin, end, thread) for blocks of rows that cover [0, n[h]) of every head.
template <typename F>
void for_blocks(const CpuContext& ctx, std::span<const int32_t> n, int64_t values_per_row, F f) {
  const int64_t n_blocks = (longest(n) + kBlock - 1) / kBlock;
  const int64_t n_tasks = std::ssize(n) * n_blocks;
  const int n_threads =
      team_size(ctx, n_tasks > 1 && longest(n) * std::ssize(n) * values_per_row >= kParallelValues);
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t i = 0; i < n_tasks; ++i) {
    const int64_t h = i / n_blocks, begin = i % n_blocks * kBlock;
    const int64_t end = std::min<int64_t>(begin + kBlock, n[h]);
    if (begin < end) f(h, begin, end, omp_get_thread_num());
  }
}

/// Bytes for `n_rows` rows of d values per thread.
size_t thread_rows(const CpuContext& ctx, int64_t n_rows, int64_t d) {
  return ctx.n_threads * n_rows * d * sizeof(float);
}

float* floats(size_t bytes) { return reinterpret_cast<float*>(scratch(bytes)); }

/// Row (h, j) as f32: in place, or converted into `room`.
const float* row_of(const Tensor& x, int64_t h, int64_t j, float* room) {
  if (x.dtype == DType::f32) return x.at<const float>(h, j);
  convert_row(x.at<const void>(h, j), x.dtype, x.shape[2], room);
  return room;
}

// The sum of f(i) over i < n in f64, as eight chains that the compiler can vectorize.
template <typename F>
double sum_of(int64_t n, F f) {
  std::array<double, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += f(i + k);
  }
  for (; i < n; ++i) sums[i % 8] += f(i);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double dot(const float* a, const float* b, int64_t n) {
  return sum_of(n, [=](int64_t i) { return static_cast<double>(a[i]) * b[i]; });
}

void put(float& score, double value, bool accumulate) {
  score = static_cast<float>(accumulate ? score + value : value);
}

}  // namespace

size_t row_norms_workspace(const CpuContext& ctx, const RowNorms& r) {
  return thread_rows(ctx, 1, r.x.shape[2]);
}

void row_norms(const CpuContext& ctx, const RowNorms& r) {
  const int64_t d = r.x.shape[2];
  float* rooms = floats(row_norms_workspace(ctx, r));
  for_blocks(ctx, r.n, d, [&](int64_t h, int64_t begin, int64_t end, int thread) {
    float* out = r.out.at<float>(h);
    for (int64_t j = begin; j < end; ++j) {
      const float* x = row_of(r.x, h, j, rooms + thread * d);
      const double norm = r.l1 ? sum_of(d, [=](int64_t i) -> double { return std::abs(x[i]); })
                               : std::sqrt(dot(x, x, d));
      put(out[j], r.inverse ? r.factor / std::max(norm, 1e-12) : r.factor * norm, r.accumulate);
    }
  });
}

size_t row_dots_workspace(const CpuContext& ctx, const Tensor& x, const Tensor&,
                          std::span<const int32_t>, const Tensor&) {
  return thread_rows(ctx, 1, x.shape[2]);
}

void row_dots(const CpuContext& ctx, const Tensor& x, const Tensor& y, std::span<const int32_t> n,
              const Tensor& out) {
  const int64_t d = x.shape[2];
  float* rooms = floats(row_dots_workspace(ctx, x, y, n, out));
  for_blocks(ctx, n, d, [&](int64_t h, int64_t begin, int64_t end, int thread) {
    for (int64_t j = begin; j < end; ++j) {
      out.at<float>(h)[j] =
          static_cast<float>(dot(row_of(x, h, j, rooms + thread * d), y.at<const float>(h, j), d));
    }
  });
}

namespace {

struct SumRooms {
  float* rooms;  // [n_threads, d]
  double* sums;  // [n_head_kv, n_blocks, d]
};

SumRooms cut_sums(const CpuContext& ctx, int64_t d, std::span<const int32_t> n,
                  ScratchCutter& cutter) {
  const int64_t n_blocks = (longest(n) + kBlock - 1) / kBlock;
  SumRooms rooms{};
  rooms.rooms = cutter.take<float>(ctx.n_threads * d);
  rooms.sums = cutter.take<double>(std::ssize(n) * n_blocks * d);
  return rooms;
}

}  // namespace

size_t sum_rows_workspace(const CpuContext& ctx, const Tensor& x, const Tensor&,
                          std::span<const int32_t> n, const Tensor&) {
  ScratchCutter measure(nullptr);
  cut_sums(ctx, x.shape[2], n, measure);
  return measure.used();
}

// Sums a head's rows in blocks and then adds the blocks' sums in order.
void sum_rows(const CpuContext& ctx, const Tensor& x, const Tensor& weights,
              std::span<const int32_t> n, const Tensor& out) {
  const int64_t d = x.shape[2], n_blocks = (longest(n) + kBlock - 1) / kBlock;
  ScratchCutter cutter(scratch(sum_rows_workspace(ctx, x, weights, n, out)));
  const auto cut = cut_sums(ctx, d, n, cutter);
  for_blocks(ctx, n, d, [&](int64_t h, int64_t begin, int64_t end, int thread) {
    double* sum = cut.sums + (h * n_blocks + begin / kBlock) * d;
    std::fill(sum, sum + d, 0.0);
    for (int64_t j = begin; j < end; ++j) {
      const float* row = row_of(x, h, j, cut.rooms + thread * d);
      const double weight = weights.at<const float>(h)[j];
      for (int64_t c = 0; c < d; ++c) sum[c] += weight * row[c];
    }
  });
  for (int64_t h = 0; h < std::ssize(n); ++h) {
    for (int64_t c = 0; c < d; ++c) {
      double total = 0.0;
      for (int64_t b = 0; b * kBlock < n[h]; ++b) total += cut.sums[(h * n_blocks + b) * d + c];
      out.at<float>(h)[c] = static_cast<float>(total);
    }
  }
}

void weigh_scores(const CpuContext& ctx, const Tensor& scores, std::span<const int32_t> n,
                  float factor, float offset, const Tensor& weights) {
  for_blocks(ctx, n, 1, [&](int64_t h, int64_t begin, int64_t end, int) {
    float* s = scores.at<float>(h);
    const float* w = weights.at<const float>(h);
    for (int64_t j = begin; j < end; ++j) {
      s[j] = static_cast<float>((static_cast<double>(factor) * s[j] + offset) * w[j]);
    }
  });
}

void add_scores(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> n,
                const Tensor& sums) {
  for_blocks(ctx, n, 1, [&](int64_t h, int64_t begin, int64_t end, int) {
    const float* add = x.at<const float>(h);
    float* sum = sums.at<float>(0, h);
    float* rest = sums.at<float>(1, h);
    for (int64_t j = begin; j < end; ++j) {
      const double total = static_cast<double>(sum[j]) + rest[j] + add[j];
      sum[j] = static_cast<float>(total);
      rest[j] = static_cast<float>(total - sum[j]);
    }
  });
}

void set_scores(const CpuContext&, const Tensor& scores, const Tensor& rows,
                std::span<const int32_t> n, float value) {
  for (int64_t h = 0; h < std::ssize(n); ++h) {
    const int32_t* row = rows.at<const int32_t>(h);
    for (int64_t i = 0; i < n[h]; ++i) scores.at<float>(h)[row[i]] = value;
  }
}

// ---------------------------------------------------------------- chunks

namespace {

void write_means(const ChunkScores& c, const float* s, int64_t n, float* out) {
  const double value = c.factor * (std::accumulate(s, s + n, 0.0) / static_cast<double>(n));
  for (int64_t j = 0; j < n; ++j) put(out[j], value, c.accumulate);
}

void write_softmax(const ChunkScores& c, const float* s, int64_t n, float* out) {
  const double max = *std::max_element(s, s + n);
  double sum = 0.0;
  for (int64_t j = 0; j < n; ++j) sum += std::exp(s[j] - max);
  for (int64_t j = 0; j < n; ++j) {
    put(out[j], c.factor * (std::exp(s[j] - max) / sum), c.accumulate);
  }
}

// By sorting, with ties in descending order of index, so that the lower index ranks higher.
void write_ranks(const ChunkScores& c, const float* s, int64_t n, int32_t* order, float* out) {
  std::iota(order, order + n, 0);
  std::sort(order, order + n, [s](int32_t a, int32_t b) {
    const bool a_is_nan = std::isnan(s[a]), b_is_nan = std::isnan(s[b]);
    if (a_is_nan != b_is_nan) return a_is_nan;
    if (!a_is_nan && s[a] != s[b]) return s[a] < s[b];
    return a > b;
  });
  for (int64_t rank = 0; rank < n; ++rank) {
    const int32_t j = order[rank];
    const double value = std::isnan(s[j]) ? s[j] : static_cast<double>(rank);
    put(out[j], static_cast<double>(c.factor) * value, c.accumulate);
  }
}

}  // namespace

size_t chunk_scores_workspace(const CpuContext& ctx, const ChunkScores& c) {
  if (c.kind != ChunkScore::rank) return 0;
  return ctx.n_threads * std::min(c.length, longest(c.n)) * sizeof(int32_t);  // an order per thread
}

void chunk_scores(const CpuContext& ctx, const ChunkScores& c) {
  const int64_t most = longest(c.n), length = std::min(c.length, most);
  const int64_t n_chunks = (std::max<int64_t>(0, most - c.begin) + length - 1) / length;
  const int n_threads = team_size(ctx, most * std::ssize(c.n) >= kParallelValues);
  auto* orders = reinterpret_cast<int32_t*>(scratch(chunk_scores_workspace(ctx, c)));
  for (int64_t h = 0; h < std::ssize(c.n) && !c.accumulate; ++h) {
    std::fill_n(c.out.at<float>(h), std::min<int64_t>(c.begin, c.n[h]), 0.0f);
  }
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t i = 0; i < std::ssize(c.n) * n_chunks; ++i) {
    const int64_t h = i / n_chunks, begin = c.begin + i % n_chunks * length;
    const int64_t n = std::min<int64_t>(length, c.n[h] - begin);
    if (n <= 0) continue;
    const float* s = c.scores.at<const float>(h) + begin;
    float* out = c.out.at<float>(h) + begin;
    switch (c.kind) {
      case ChunkScore::mean:
        write_means(c, s, n, out);
        break;
      case ChunkScore::softmax:
        write_softmax(c, s, n, out);
        break;
      case ChunkScore::rank:
        write_ranks(c, s, n, orders + omp_get_thread_num() * length, out);
        break;
    }
  }
}

// ---------------------------------------------------------------- LagKV

namespace {

struct Range {
  float *low, *high;  // [d]
};

void find_range(const Tensor& x, int64_t h, int64_t begin, int64_t end, float* room, Range range) {
  const int64_t d = x.shape[2];
  for (int64_t j = begin; j < end; ++j) {
    const float* row = row_of(x, h, j, room);
    for (int64_t c = 0; c < d; ++c) {
      range.low[c] = j == begin ? row[c] : std::min(range.low[c], row[c]);
      range.high[c] = j == begin ? row[c] : std::max(range.high[c], row[c]);
    }
  }
}

/// The standard deviation of a row's d channels, each relative to its range.
float deviation(const float* row, int64_t d, Range range) {
  if (d < 2) return 0.0f;
  const auto value = [=](int64_t c) {
    const double low = range.low[c], width = range.high[c] - low, above = row[c] - low;
    return width > 0.0 ? above / width : 0.0 * above;
  };
  const double mean = sum_of(d, value) / static_cast<double>(d);
  const double squares =
      sum_of(d, [=](int64_t c) { return (value(c) - mean) * (value(c) - mean); });
  return static_cast<float>(std::sqrt(squares / static_cast<double>(d - 1)));
}

}  // namespace

size_t lag_deviations_workspace(const CpuContext& ctx, const Tensor& x, std::span<const int32_t>,
                                int64_t, int64_t, const Tensor&) {
  return thread_rows(ctx, 3, x.shape[2]);
}

void lag_deviations(const CpuContext& ctx, const Tensor& x, std::span<const int32_t> n,
                    int64_t begin, int64_t lag, const Tensor& out) {
  const int64_t d = x.shape[2], most = longest(n);
  const int64_t n_chunks = std::max<int64_t>(0, most - begin) / lag;  // complete ones
  const int n_threads = team_size(ctx, most * std::ssize(n) * d >= kParallelValues);
  float* rooms = floats(lag_deviations_workspace(ctx, x, n, begin, lag, out));
  for (int64_t h = 0; h < std::ssize(n); ++h) std::fill_n(out.at<float>(h), n[h], 0.0f);
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t i = 0; i < std::ssize(n) * n_chunks; ++i) {
    const int64_t h = i / n_chunks, first = begin + i % n_chunks * lag, next = first + lag;
    if (next + lag > n[h]) continue;
    float* room = rooms + omp_get_thread_num() * 3 * d;
    const Range range{room + d, room + 2 * d};
    find_range(x, h, next, next + lag, room, range);
    for (int64_t j = first; j < next; ++j) {
      out.at<float>(h)[j] = deviation(row_of(x, h, j, room), d, range);
    }
  }
}

}  // namespace snapkv::cpu
