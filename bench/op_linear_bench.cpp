// SPDX-License-Identifier: MIT
// Google Benchmark of matrix products: project() (decode), pack() and project_packed() (prefill),
// each with its floor (op_floor.h). Results are first checked against the reference. The matrices
// of one shape together exceed every cache, in pages of 4 KB as in a file.
//
//   op_linear_bench --benchmark_filter='project/q8_0'
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/half.h"
#include "bench/op_floor.h"
#include "bench/quantize.h"

namespace snapkv {
namespace {

constexpr size_t kPoolBytes = size_t{512} << 20;  // larger than any cache

/// The memory for weights of all shapes and types.
char* pool() {
  static char* const memory = [] {
    void* p = mmap(nullptr, kPoolBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    madvise(p, kPoolBytes, MADV_NOHUGEPAGE);
    std::memset(p, 0, kPoolBytes);
    return static_cast<char*>(p);
  }();
  return memory;
}

float uniform(std::mt19937& rng) { return static_cast<float>(rng() % 2001) / 1000.0f - 1.0f; }

/// Random weights of magnitude 0.05 or less.
void fill(char* p, DType type, int64_t n) {
  std::mt19937 rng(1);
  std::vector<float> values(n);
  for (float& v : values) v = 0.05f * uniform(rng);
  quantize(type, values.data(), n, p);
}

/// As many matrices of one shape as the pool holds; the pool is refilled if the type changes.
std::vector<Tensor> make_weights(DType type, int64_t n_out, int64_t n_in) {
  const size_t bytes = static_cast<size_t>(n_out * row_bytes(type, n_in));
  static DType filled = DType::i32;
  if (filled != type) {
    constexpr int64_t kValues = int64_t{1} << 18;  // whole blocks of every type; repeated
    const size_t pattern = row_bytes(type, kValues);
    fill(pool(), type, kValues);
    for (size_t i = pattern; i < kPoolBytes; i += pattern) {
      std::memcpy(pool() + i, pool(), std::min(pattern, kPoolBytes - i));
    }
    filled = type;
  }
  std::vector<Tensor> weights;
  for (size_t i = 0; (i + 1) * bytes <= kPoolBytes; ++i) {
    weights.emplace_back(pool() + i * bytes, type, std::initializer_list<int64_t>{n_out, n_in});
  }
  return weights;
}

Backend& cpu(Compute compute) {
  static const auto automatic = Backend::make({});
  static const auto f32 = Backend::make({.compute = Compute::f32});
  return compute == Compute::f32 ? *f32 : *automatic;
}

std::vector<float> random_values(int64_t n) {
  std::mt19937 rng(2);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = uniform(rng);
  return values;
}

void check(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  if (difference <= tolerance * tolerance * norm) return;
  std::fprintf(stderr, "wrong result: relative error %g\n", std::sqrt(difference / norm));
  std::exit(1);
}

std::vector<float> reference(Tensor w, int64_t n_check, const std::vector<float>& x, int64_t n) {
  static const auto ref = Backend::make({.device = "reference"});
  w = w.slice(0, n_check);
  std::vector<float> out(static_cast<size_t>(n * n_check));
  const Tensor x_view(const_cast<float*>(x.data()), DType::f32, {n, w.shape[1]});
  ops::project(
      *ref, x_view,
      std::array{Projection{.w = w, .bias = {}, .out = {out.data(), DType::f32, {n, n_check}}}});
  return out;
}
/// The same columns of a complete result.
std::vector<float> first_columns(const std::vector<float>& out, int64_t n, int64_t n_check) {
  std::vector<float> part;
  const int64_t n_out = static_cast<int64_t>(out.size()) / n;
  for (int64_t t = 0; t < n; ++t) {
    part.insert(part.end(), out.begin() + t * n_out, out.begin() + t * n_out + n_check);
  }
  return part;
}

void project(benchmark::State& state, Compute compute, DType type, int64_t n_out, int64_t n_in,
             int64_t n) {
  const std::vector<Tensor> weights = make_weights(type, n_out, n_in);
  std::vector<float> x = random_values(n * n_in), out(static_cast<size_t>(n * n_out));
  const Tensor x_view(x.data(), DType::f32, {n, n_in});
  const auto run = [&](const Tensor& w) {
    ops::project(
        cpu(compute), x_view,
        std::array{Projection{.w = w, .bias = {}, .out = {out.data(), DType::f32, {n, n_out}}}});
  };
  run(weights[0]);
  const int64_t n_check = std::min<int64_t>(n_out, 200);
  check(first_columns(out, n, n_check), reference(weights[0], n_check, x, n), 0.01);
  size_t i = 0;
  for (auto _ : state) run(weights[i++ % weights.size()]);
  report_work(state, cpu(compute),
              {.flop = 2.0 * static_cast<double>(n * n_out * n_in),
               .bytes = static_cast<double>(n_out * row_bytes(type, n_in))});
}

void pack(benchmark::State& state, Compute compute, DType type, int64_t n_out, int64_t n_in) {
  const std::vector<Tensor> weights = make_weights(type, n_out, n_in);
  PackedWeight packed;
  ops::pack(cpu(compute), weights[0], packed);
  size_t i = 0;
  for (auto _ : state) ops::pack(cpu(compute), weights[i++ % weights.size()], packed);
  // Bytes read in the file's type and written in the compute type.
  const int64_t bytes =
      n_out * (row_bytes(type, n_in) + row_bytes(cpu(compute).compute_dtype(), n_in));
  report_work(state, cpu(compute), {.bytes = static_cast<double>(bytes)});
}

/// If products read weights as they are, these come from memory; packed weights are reused.
void project_packed(benchmark::State& state, Compute compute, DType type, int64_t n_out,
                    int64_t n_in, int64_t n) {
  Backend& backend = cpu(compute);
  const std::vector<Tensor> weights = make_weights(type, n_out, n_in);
  std::vector<PackedWeight> packed(backend.products(type).packed_in_bytes ? weights.size() : 1);
  for (size_t i = 0; i < packed.size(); ++i) ops::pack(backend, weights[i], packed[i]);
  std::vector<float> x = random_values(n * n_in), out(static_cast<size_t>(n * n_out));
  std::vector<bf16_t> x_bf16;
  for (float& v : x) {
    x_bf16.push_back(to_bf16(v));
    v = to_f32(x_bf16.back());
  }
  const bool bf16 = backend.compute_dtype() == DType::bf16;
  const Tensor x_view(bf16 ? static_cast<void*>(x_bf16.data()) : x.data(), backend.compute_dtype(),
                      {n, n_in});
  const Tensor out_view(out.data(), DType::f32, {n, n_out});
  ops::project_packed(backend, x_view, packed[0], {}, out_view, false);
  const int64_t n_check = std::min<int64_t>(n_out, 100);
  const std::vector<float> few_rows(x.begin(), x.begin() + 2 * n_in);
  check(first_columns(std::vector<float>(out.begin(), out.begin() + 2 * n_out), 2, n_check),
        reference(weights[0], n_check, few_rows, 2), 0.01);
  size_t i = 0;
  for (auto _ : state) {
    ops::project_packed(backend, x_view, packed[i++ % packed.size()], {}, out_view, false);
  }
  report_work(state, backend, {.flop = 2.0 * static_cast<double>(n * n_out * n_in)});
}

void register_all() {
  const auto add = [](const std::string& name, auto function) {
    benchmark::RegisterBenchmark(name.c_str(), function)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (const DType type : kWeightTypes) {
    for (const auto& [rows, cols] :
         {std::pair<int64_t, int64_t>{8192, 2048}, {2048, 8192}, {512, 2048}}) {
      const int64_t n_out = rows, n_in = cols;  // Clang 14's lambdas cannot capture bindings
      const std::string shape =
          std::string(name(type)) + "/" + std::to_string(n_out) + "x" + std::to_string(n_in);
      for (const Compute compute : {Compute::automatic, Compute::f32}) {
        const std::string suffix = compute == Compute::f32 ? "/f32" : "";
        for (const int64_t n : {1, 2, 4, 8, 16, 32, 64}) {
          add("project/" + shape + "/n" + std::to_string(n) + suffix,
              [=](benchmark::State& s) { project(s, compute, type, n_out, n_in, n); });
        }
        add("pack/" + shape + suffix,
            [=](benchmark::State& s) { pack(s, compute, type, n_out, n_in); });
        for (const int64_t n : {16, 32, 64, 512}) {
          add("project_packed/" + shape + "/n" + std::to_string(n) + suffix,
              [=](benchmark::State& s) { project_packed(s, compute, type, n_out, n_in, n); });
        }
      }
    }
  }
}

}  // namespace
}  // namespace snapkv

int main(int argc, char** argv) {
  snapkv::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
