// SPDX-License-Identifier: MIT
// Micro-benchmarks of attention and selection (Google Benchmark): GFLOP/s beside the GEMM rate of
// the same backend, GB/s beside the read bandwidth, both measured first in the same run. Every
// shape is checked against ref/ on a small case before anything is timed.
//
//   op_attention_bench --benchmark_filter=prefill
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/buffer.h"
#include "base/half.h"
#include "base/timer.h"

namespace snapkv {
namespace {

Backend& backend(Compute compute) {
  static const auto f32 = Backend::make({.kind = BackendKind::cpu, .compute = Compute::f32});
  static const auto bf16 = Backend::make({.kind = BackendKind::cpu, .compute = Compute::bf16});
  return compute == Compute::f32 ? *f32 : *bf16;
}

/// A contiguous tensor of uniform values in [-1, 1], f32, f16 or bf16.
struct Data {
  Data(DType dtype, std::initializer_list<int64_t> shape) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    storage = Buffer::host(static_cast<size_t>(n * block_bytes(dtype)), "benchmark data");
    view = storage.view(dtype, shape);
    uint32_t state = 12345;
    for (int64_t i = 0; i < n; ++i) {
      state = state * 1664525u + 1013904223u;
      const float x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
      if (dtype == DType::f32) static_cast<float*>(view.data)[i] = x;
      if (dtype == DType::f16) static_cast<f16_t*>(view.data)[i] = to_f16(x);
      if (dtype == DType::bf16) static_cast<bf16_t*>(view.data)[i] = to_bf16(x);
    }
  }
  Buffer storage;
  Tensor view;
};

double best_seconds(int repetitions, const auto& run) {
  double best = 1e30;
  for (int i = 0; i < repetitions; ++i) {
    const Timer timer;
    run();
    best = std::min(best, timer.seconds());
  }
  return best;
}

/// GFLOP/s of the backend's large products.
double gemm_rate(Compute compute) {
  static double rates[2] = {};
  double& rate = rates[compute == Compute::f32 ? 0 : 1];
  if (rate == 0) {
    constexpr int64_t kRows = 1024, kIn = 2048, kOut = 2048;
    Backend& b = backend(compute);
    const Data x(b.compute_dtype(), {kRows, kIn}), w(b.compute_dtype(), {kOut, kIn});
    const Data out(DType::f32, {kRows, kOut});
    PackedWeight packed;
    ops::pack(b, w.view, packed);
    const double seconds =
        best_seconds(5, [&] { ops::project_packed(b, x.view, packed, Tensor(), out.view, false); });
    rate = 2.0 * kRows * kIn * kOut / seconds * 1e-9;
  }
  return rate;
}

/// GB/s of reading memory that no cache holds, with the backend's threads.
double read_rate() {
  static const double rate = [] {
    constexpr int64_t kWords = 64 << 20;  // 512 MiB
    const Buffer buffer = Buffer::host(kWords * sizeof(uint64_t), "bandwidth probe");
    auto* words = static_cast<uint64_t*>(buffer.data());
    std::fill(words, words + kWords, 1);
    uint64_t sum = 0;
    const double seconds = best_seconds(4, [&] {
#pragma omp parallel for reduction(+ : sum)
      for (int64_t i = 0; i < kWords; i += 8) {
        sum += words[i] + words[i + 1] + words[i + 2] + words[i + 3] + words[i + 4] + words[i + 5] +
               words[i + 6] + words[i + 7];
      }
    });
    benchmark::DoNotOptimize(sum);
    return kWords * sizeof(uint64_t) / seconds * 1e-9;
  }();
  return rate;
}

struct Shape {
  int64_t n_head, n_head_kv, head_dim;
};

void require_close(const Tensor& actual, const Tensor& expected, double tolerance,
                   const char* what) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < actual.numel(); ++i) {
    const double e = static_cast<const float*>(expected.data)[i];
    const double d = static_cast<const float*>(actual.data)[i] - e;
    difference += d * d;
    norm += e * e;
  }
  if (!(std::sqrt(difference) <= tolerance * std::sqrt(norm))) {
    std::fprintf(stderr, "%s: the result differs from the reference; nothing is timed\n", what);
    std::exit(1);
  }
}

// ---------------------------------------------------------------- prefill

struct Prefill {
  Prefill(const Shape& s, int64_t n, int64_t past, DType kv)
      : q(DType::f32, {n, s.n_head, s.head_dim}),
        k(kv, {s.n_head_kv, past + n, s.head_dim}),
        v(kv, {s.n_head_kv, past + n, s.head_dim}),
        out(DType::f32, {n, s.n_head, s.head_dim}),
        n_past(static_cast<size_t>(s.n_head_kv), static_cast<int32_t>(past)) {}
  PrefillAttention arguments() const {
    const float scale = 1.0f / std::sqrt(static_cast<float>(q.view.shape[2]));
    return {q.view, k.view, v.view, n_past, scale, out.view};
  }
  Data q, k, v, out;
  std::vector<int32_t> n_past;
};

void check_prefill(const Shape& s, Compute compute, DType kv) {
  const Prefill p({s.n_head / s.n_head_kv, 1, s.head_dim}, 9, 600, kv);
  const Data expected(DType::f32, {9, s.n_head / s.n_head_kv, s.head_dim});
  ops::attention_prefill(backend(compute), p.arguments());
  PrefillAttention a = p.arguments();
  a.out = expected.view;
  ops::attention_prefill(*Backend::make({.kind = BackendKind::ref}), a);
  require_close(p.out.view, expected.view, compute == Compute::f32 ? 1e-4 : 1e-2, "prefill");
}

/// Arguments: n, n_past, n_head, n_head_kv, head_dim.
void prefill(benchmark::State& state, Compute compute, DType kv) {
  const int64_t n = state.range(0), past = state.range(1);
  const Shape s{state.range(2), state.range(3), state.range(4)};
  check_prefill(s, compute, kv);
  const double peak = gemm_rate(compute);
  const Prefill p(s, n, past, kv);
  for (auto _ : state) ops::attention_prefill(backend(compute), p.arguments());
  const auto rows = static_cast<double>(n * past + n * (n + 1) / 2);
  const double flops = 4.0 * static_cast<double>(s.head_dim * s.n_head) * rows;
  using benchmark::Counter;
  state.counters["GFLOP/s"] = Counter(flops * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GEMM_GFLOP/s"] = peak;
  state.counters["of_GEMM"] = Counter(flops * 1e-9 / peak, Counter::kIsIterationInvariantRate);
}

// ---------------------------------------------------------------- decode

/// Arguments: n_seq, n_kv, n_head, n_head_kv, head_dim. Walks through layers that no cache holds.
void decode(benchmark::State& state, DType kv) {
  const int64_t n_seq = state.range(0), n_kv = state.range(1);
  const Shape s{state.range(2), state.range(3), state.range(4)};
  const double peak = read_rate();
  const int64_t head_bytes = n_kv * s.head_dim * block_bytes(kv);
  const int64_t heads = n_seq * s.n_head_kv;
  const int64_t layers = std::max<int64_t>((256 << 20) / (heads * head_bytes), 1);
  const Data k(kv, {layers * heads, n_kv, s.head_dim}), v(kv, {layers * heads, n_kv, s.head_dim});
  const Data q(DType::f32, {n_seq, s.n_head, s.head_dim});
  const Data out(DType::f32, {n_seq, s.n_head, s.head_dim});
  const Data expected(DType::f32, {n_seq, s.n_head, s.head_dim});
  std::vector<HeadRows> rows(static_cast<size_t>(heads));
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
  const auto arguments = [&](int64_t layer, const Tensor& to) {
    for (int64_t h = 0; h < heads; ++h) {
      rows[static_cast<size_t>(h)] = {k.view.at<char>(layer * heads + h),
                                      v.view.at<char>(layer * heads + h),
                                      static_cast<int32_t>(n_kv)};
    }
    return DecodeAttention{q.view, rows, kv, scale, to};
  };
  ops::attention_decode(backend(Compute::f32), arguments(0, out.view));
  ops::attention_decode(*Backend::make({.kind = BackendKind::ref}), arguments(0, expected.view));
  require_close(out.view, expected.view, 1e-4, "decode");
  int64_t layer = 0;
  for (auto _ : state) {
    ops::attention_decode(backend(Compute::f32), arguments(layer, out.view));
    layer = (layer + 1) % layers;
  }
  const double gigabytes = 2e-9 * static_cast<double>(heads * head_bytes);
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(gigabytes, Counter::kIsIterationInvariantRate);
  state.counters["read_GB/s"] = peak;
  state.counters["of_read"] = Counter(gigabytes / peak, Counter::kIsIterationInvariantRate);
}

// ---------------------------------------------------------------- selection

/// Scoring, pooling, ranking and gathering of one layer; budget 1024, window 32, kernel 7.
struct Selection {
  static constexpr int32_t kWindow = 32;
  Selection(const Shape& s, int64_t n)
      : q(DType::f32, {kWindow, s.n_head, s.head_dim}),
        k(DType::f16, {s.n_head_kv, n, s.head_dim}),
        votes(DType::f32, {s.n_head_kv, n}),
        pooled(DType::f32, {s.n_head_kv, n}),
        kept(DType::f16, {2 * s.n_head_kv, 1024, s.head_dim}),
        rows_storage(Buffer::host(static_cast<size_t>(s.n_head_kv) * 4096, "rows")),
        rows(rows_storage.view(DType::i32, {s.n_head_kv, 1024})),
        n_rows(static_cast<size_t>(s.n_head_kv), static_cast<int32_t>(n)),
        n_prefix(n_rows.size(), static_cast<int32_t>(n) - kWindow),
        n_top(n_rows.size(), std::min<int32_t>(1024, static_cast<int32_t>(n)) - kWindow),
        n_kept(n_rows.size(), n_top[0] + kWindow) {
    for (int64_t h = 0; h < 2 * s.n_head_kv; ++h) dst.push_back(kept.view.at<char>(h));
  }
  void run(Backend& b) const {
    const float scale = 1.0f / std::sqrt(static_cast<float>(q.view.shape[2]));
    ops::window_votes(b, {q.view, k.view, n_rows, scale, GroupReduce::mean, votes.view});
    ops::pool(b, votes.view, n_prefix, 7, Pooling::max, pooled.view);
    ops::top_k(b, pooled.view, n_prefix, n_top, kWindow, rows);
    const std::span<void* const> all(dst);
    ops::gather_rows(b, k.view, rows, n_kept, all.first(n_rows.size()));
    ops::gather_rows(b, k.view, rows, n_kept, all.last(n_rows.size()));  // K's memory plays V
  }
  Data q, k, votes, pooled, kept;
  Buffer rows_storage;
  Tensor rows;
  std::vector<int32_t> n_rows, n_prefix, n_top, n_kept;
  std::vector<void*> dst;
};

/// Arguments: n, n_head, n_head_kv, head_dim.
void selection(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Shape s{state.range(1), state.range(2), state.range(3)};
  const Selection small({s.n_head / s.n_head_kv, 1, s.head_dim}, 600);
  const Selection expected({s.n_head / s.n_head_kv, 1, s.head_dim}, 600);
  small.run(backend(Compute::f32));
  expected.run(*Backend::make({.kind = BackendKind::ref}));
  require_close(small.votes.view, expected.votes.view, 1e-4, "window_votes");
  const double peak = gemm_rate(Compute::f32);
  const Selection layer(s, n);
  for (auto _ : state) layer.run(backend(Compute::f32));
  const double flops = 2.0 * Selection::kWindow * static_cast<double>(s.n_head * s.head_dim * n);
  using benchmark::Counter;
  state.counters["GFLOP/s"] = Counter(flops * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GEMM_GFLOP/s"] = peak;
}

void prefill_shapes(benchmark::internal::Benchmark* b) {
  for (int64_t past : {0, 4096, 16384}) {
    b->Args({512, past, 32, 8, 64})->Args({2048, past, 32, 8, 64})->Args({512, past, 32, 32, 128});
  }
  b->Args({32, 16384, 32, 8, 64})->UseRealTime()->Unit(benchmark::kMillisecond);
}
void decode_shapes(benchmark::internal::Benchmark* b) {
  for (int64_t n_kv : {1024, 16384}) {
    b->Args({1, n_kv, 32, 8, 64})->Args({1, n_kv, 32, 32, 64})->Args({1, n_kv, 32, 8, 128});
  }
  b->Args({8, 1024, 32, 8, 64})->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(prefill, bf16_kv_f16, Compute::bf16, DType::f16)->Apply(prefill_shapes);
BENCHMARK_CAPTURE(prefill, f32_kv_f16, Compute::f32, DType::f16)->Apply(prefill_shapes);
BENCHMARK_CAPTURE(decode, kv_f16, DType::f16)->Apply(decode_shapes);
BENCHMARK_CAPTURE(decode, kv_bf16, DType::bf16)->Apply(decode_shapes);
BENCHMARK_CAPTURE(decode, kv_f32, DType::f32)->Apply(decode_shapes);
BENCHMARK(selection)
    ->Args({1024, 32, 8, 64})
    ->Args({16384, 32, 8, 64})
    ->Args({16384, 32, 32, 128})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace snapkv

BENCHMARK_MAIN();
