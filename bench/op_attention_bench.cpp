// SPDX-License-Identifier: MIT
// Google Benchmark of attention and selection, each with its floor (op_floor.h). Every shape is
// checked against the reference on a small case before it is timed.
//
//   op_attention_bench --benchmark_filter=prefill
//   op_attention_bench --benchmark_filter='decode/kv_(f16|q8_0)/1/16384/32/8/64'
//   SNAPKV_CPU_TARGET=avx2 op_attention_bench --benchmark_filter=prefill/f32
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/buffer.h"
#include "bench/op_floor.h"
#include "format/block_types.h"

namespace snapkv {
namespace {

// Each backend is made when it is first needed: with only AVX2 there is none for bf16.
Backend& backend(Compute compute) {
  if (compute == Compute::f32) {
    static const auto f32 = Backend::make({.device = "cpu", .compute = Compute::f32});
    return *f32;
  }
  static const auto bf16 = Backend::make({.device = "cpu", .compute = Compute::bf16});
  return *bf16;
}

/// A contiguous tensor of uniform values in [-1, 1] in a cache dtype.
struct Data {
  Data(DType dtype, std::initializer_list<int64_t> shape) {
    const int64_t n_cols = shape.end()[-1];
    int64_t n_rows = 1;
    for (int64_t d : shape) n_rows *= d;
    n_rows /= n_cols;
    storage = Buffer::host(static_cast<size_t>(n_rows * row_bytes(dtype, n_cols)), "data");
    view = storage.view(dtype, shape);
    uint32_t state = 12345;
    constexpr int64_t kRows = 4096;  // rows at a time
    std::vector<float> values(static_cast<size_t>(std::min(n_rows, kRows) * n_cols));
    for (int64_t row = 0; row < n_rows; row += kRows) {
      for (float& x : values) {
        state = state * 1664525u + 1013904223u;
        x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
      }
      const std::array<void*, 1> to = {static_cast<char*>(view.data) +
                                       row * row_bytes(dtype, n_cols)};
      const Tensor rows(values.data(), DType::f32, {std::min(n_rows - row, kRows), 1, n_cols});
      ops::store_rows(backend(Compute::f32), rows, dtype, to);
    }
  }
  Buffer storage;
  Tensor view;
};

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
  ops::attention_prefill(*Backend::make({.device = "reference"}), a);
  require_close(p.out.view, expected.view, compute == Compute::f32 ? 1e-4 : 1e-2, "prefill");
}

/// Arguments: n, n_past, n_head, n_head_kv, head_dim.
void prefill(benchmark::State& state, Compute compute, DType kv) {
  const int64_t n = state.range(0), past = state.range(1);
  const Shape s{state.range(2), state.range(3), state.range(4)};
  check_prefill(s, compute, kv);
  const Prefill p(s, n, past, kv);
  for (auto _ : state) ops::attention_prefill(backend(compute), p.arguments());
  const auto rows = static_cast<double>(n * past + n * (n + 1) / 2);
  report_work(state, backend(compute),
              {.flop = 4.0 * static_cast<double>(s.head_dim * s.n_head) * rows});
}

// ---------------------------------------------------------------- decode

/// Rows of several layers, checked against the reference.
struct Decode {
  Decode(DType kv, const std::vector<int64_t>& arguments)
      : kv_dtype(kv),
        n_seq(arguments[0]),
        n_kv(arguments[1]),
        shape{arguments[2], arguments[3], arguments[4]},
        heads(n_seq * shape.n_head_kv),
        head_bytes(n_kv * row_bytes(kv, shape.head_dim)),
        layers(std::max<int64_t>((arguments[5] << 20) / (2 * heads * head_bytes), 1)),
        k(kv, {layers * heads, n_kv, shape.head_dim}),
        v(kv, {layers * heads, n_kv, shape.head_dim}),
        q(DType::f32, {n_seq, shape.n_head, shape.head_dim}),
        out(DType::f32, {n_seq, shape.n_head, shape.head_dim}),
        rows(static_cast<size_t>(heads)) {
    const Data expected(DType::f32, {n_seq, shape.n_head, shape.head_dim});
    ops::attention_decode(backend(Compute::f32), of_layer(0, out.view));
    ops::attention_decode(*Backend::make({.device = "reference"}), of_layer(0, expected.view));
    require_close(out.view, expected.view, 1e-4, "decode");
  }
  DecodeAttention of_layer(int64_t layer, const Tensor& to) {
    for (int64_t h = 0; h < heads; ++h) {
      rows[static_cast<size_t>(h)] = {k.view.at<char>(layer * heads + h),
                                      v.view.at<char>(layer * heads + h),
                                      static_cast<int32_t>(n_kv)};
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    return {q.view, rows, kv_dtype, scale, to};
  }

  DType kv_dtype;
  int64_t n_seq, n_kv;
  Shape shape;
  int64_t heads, head_bytes, layers;
  Data k, v, q, out;
  std::vector<HeadRows> rows;
};

/// Arguments: n_seq, n_kv, n_head, n_head_kv, head_dim, MiB of rows that the calls go through layer
/// by layer: more than any cache holds, or 0 to use a single layer again and again.
void decode(benchmark::State& state, DType kv) {
  std::vector<int64_t> arguments;
  for (int i = 0; i < 6; ++i) arguments.push_back(state.range(i));
  // The library calls this function several times for one measurement.
  static std::unique_ptr<Decode> made;
  static std::vector<int64_t> made_of;
  if (made == nullptr || made->kv_dtype != kv || made_of != arguments) {
    made.reset();
    made = std::make_unique<Decode>(kv, arguments);
    made_of = arguments;
  }
  int64_t layer = 0;
  for (auto _ : state) {
    ops::attention_decode(backend(Compute::f32), made->of_layer(layer, made->out.view));
    layer = (layer + 1) % made->layers;
  }
  report_work(state, backend(Compute::f32),
              {.bytes = 2.0 * static_cast<double>(made->heads * made->head_bytes)});
  // Rows of keys and values together; both types have equally many.
  state.counters["rows/s"] = benchmark::Counter(static_cast<double>(made->heads * made->n_kv),
                                                benchmark::Counter::kIsIterationInvariantRate);
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
    ops::gather_rows(b, k.view, rows, n_kept, all.last(n_rows.size()));  // K also stands for V
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
  expected.run(*Backend::make({.device = "reference"}));
  require_close(small.votes.view, expected.votes.view, 1e-4, "window_votes");
  const Selection layer(s, n);
  for (auto _ : state) layer.run(backend(Compute::f32));
  report_work(state, backend(Compute::f32),
              {.flop = 2.0 * Selection::kWindow * static_cast<double>(s.n_head * s.head_dim * n)});
}

void prefill_shapes(benchmark::internal::Benchmark* b) {
  for (int64_t past : {0, 4096, 16384}) {
    b->Args({512, past, 32, 8, 64})->Args({2048, past, 32, 8, 64})->Args({512, past, 32, 32, 128});
  }
  b->Args({4096, 0, 32, 8, 64})->Args({16384, 0, 32, 8, 64});
  b->Args({32, 16384, 32, 8, 64})->UseRealTime()->Unit(benchmark::kMillisecond);
}
void decode_shapes(benchmark::internal::Benchmark* b) {
  for (const int64_t mib : {0, 512}) {
    for (const int64_t n_kv : {1024, 16384}) {
      b->Args({1, n_kv, 32, 8, 64, mib});
      b->Args({1, n_kv, 32, 32, 64, mib});
      b->Args({1, n_kv, 32, 8, 128, mib});
    }
  }
  b->Args({8, 1024, 32, 8, 64, 512})->UseRealTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK_CAPTURE(prefill, bf16_kv_f16, Compute::bf16, DType::f16)->Apply(prefill_shapes);
BENCHMARK_CAPTURE(prefill, f32_kv_f16, Compute::f32, DType::f16)->Apply(prefill_shapes);
BENCHMARK_CAPTURE(decode, kv_f16, DType::f16)->Apply(decode_shapes);
BENCHMARK_CAPTURE(decode, kv_bf16, DType::bf16)->Apply(decode_shapes);
BENCHMARK_CAPTURE(decode, kv_f32, DType::f32)->Apply(decode_shapes);
BENCHMARK_CAPTURE(decode, kv_q8_0, DType::q8_0)->Apply(decode_shapes);
BENCHMARK(selection)
    ->Args({1024, 32, 8, 64})
    ->Args({16384, 32, 8, 64})
    ->Args({16384, 32, 32, 128})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace snapkv

BENCHMARK_MAIN();
