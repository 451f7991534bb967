// SPDX-License-Identifier: MIT
// Shared by the tests of src/backend and src/policy: tensors that own their memory (random,
// converted, quantized) and comparison with a tolerance.
//
//   TestTensor x = random_tensor({4, 64}, 1);                         // f32, normal(0, 1)
//   TestTensor w = random_tensor({32, 64}, 2, DType::q8_0);           // any type
//   TestTensor out = TestTensor({4, 32});                             // zeros
//   ops::project(backend, x, std::array{Projection{.w = w, .out = out}});   // converts to Tensor
//   EXPECT_TRUE(all_close(out, expected, {.abs = 1e-5, .rel = 1e-5}));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/half.h"
#include "base/tensor.h"
#include "bench/k_quants.h"
#include "format/block_types.h"

namespace snapkv::test {

// ---------------------------------------------------------------- conversion

/// Value i of a row of q4_k or q5_k blocks, in the block that holds it.
template <class Block>
float value_with_min(const Block& b, int64_t i) {
  const int j = static_cast<int>(i % kSuperblockSize), part = j / kBlockSize;
  return to_f32(b.scales.d) * static_cast<float>(b.scales.scale(part) * b.level(j)) -
         to_f32(b.scales.dmin) * static_cast<float>(b.scales.min(part));
}

/// n values of any type to f32.
inline std::vector<float> to_f32_values(const void* data, DType dtype, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    float& o = out[static_cast<size_t>(i)];
    switch (dtype) {
      case DType::f32:
        o = static_cast<const float*>(data)[i];
        break;
      case DType::f16:
        o = to_f32(static_cast<const f16_t*>(data)[i]);
        break;
      case DType::bf16:
        o = to_f32(static_cast<const bf16_t*>(data)[i]);
        break;
      case DType::i32:
        o = static_cast<float>(static_cast<const int32_t*>(data)[i]);
        break;
      case DType::q8_0: {
        const BlockQ8_0& b = static_cast<const BlockQ8_0*>(data)[i / kBlockSize];
        o = to_f32(b.d) * b.qs[i % kBlockSize];
        break;
      }
      case DType::q4_0: {
        const BlockQ4_0& b = static_cast<const BlockQ4_0*>(data)[i / kBlockSize];
        const int64_t j = i % kBlockSize;
        o = to_f32(b.d) * ((j < 16 ? b.qs[j] & 15 : b.qs[j - 16] >> 4) - 8);
        break;
      }
      case DType::q4_k:
        o = value_with_min(static_cast<const BlockQ4_K*>(data)[i / kSuperblockSize], i);
        break;
      case DType::q5_k:
        o = value_with_min(static_cast<const BlockQ5_K*>(data)[i / kSuperblockSize], i);
        break;
      case DType::q6_k: {
        const BlockQ6_K& b = static_cast<const BlockQ6_K*>(data)[i / kSuperblockSize];
        const int j = static_cast<int>(i % kSuperblockSize);
        o = to_f32(b.d) * static_cast<float>(b.scales[j / 16] * b.level(j));
        break;
      }
    }
  }
  return out;
}

inline BlockQ8_0 quantize_q8_0(const float* x) {
  float max = 0;
  for (int i = 0; i < kBlockSize; ++i) max = std::max(max, std::abs(x[i]));
  BlockQ8_0 b;
  b.d = to_f16(max / 127.0f);
  for (int i = 0; i < kBlockSize; ++i) {
    b.qs[i] = static_cast<int8_t>(max > 0 ? std::lround(x[i] * 127.0f / max) : 0);
  }
  return b;
}

inline BlockQ4_0 quantize_q4_0(const float* x) {
  float max = 0;  // the value of largest magnitude, with its sign, becomes -8
  for (int i = 0; i < kBlockSize; ++i) {
    if (std::abs(x[i]) > std::abs(max)) max = x[i];
  }
  const float d = max / -8.0f;
  BlockQ4_0 b;
  b.d = to_f16(d);
  for (int i = 0; i < kBlockSize / 2; ++i) {
    const auto level = [d](float v) {
      return d != 0 ? std::clamp(static_cast<int>(std::lround(v / d)) + 8, 0, 15) : 8;
    };
    b.qs[i] = static_cast<uint8_t>(level(x[i]) | level(x[i + 16]) << 4);
  }
  return b;
}

/// Writes n f32 values as `dtype`; n a multiple of block_size(dtype).
inline void convert_values(const float* src, int64_t n, DType dtype, void* dst) {
  for (int64_t i = 0; i < n; i += block_size(dtype)) {
    switch (dtype) {
      case DType::f32:
        static_cast<float*>(dst)[i] = src[i];
        break;
      case DType::f16:
        static_cast<f16_t*>(dst)[i] = to_f16(src[i]);
        break;
      case DType::bf16:
        static_cast<bf16_t*>(dst)[i] = to_bf16(src[i]);
        break;
      case DType::i32:
        static_cast<int32_t*>(dst)[i] = static_cast<int32_t>(src[i]);
        break;
      case DType::q8_0:
        static_cast<BlockQ8_0*>(dst)[i / kBlockSize] = quantize_q8_0(src + i);
        break;
      case DType::q4_0:
        static_cast<BlockQ4_0*>(dst)[i / kBlockSize] = quantize_q4_0(src + i);
        break;
      case DType::q4_k:
        quantize_q4_k(src + i, kSuperblockSize, static_cast<BlockQ4_K*>(dst) + i / kSuperblockSize);
        break;
      case DType::q5_k:
        quantize_q5_k(src + i, kSuperblockSize, static_cast<BlockQ5_K*>(dst) + i / kSuperblockSize);
        break;
      case DType::q6_k:
        quantize_q6_k(src + i, kSuperblockSize, static_cast<BlockQ6_K*>(dst) + i / kSuperblockSize);
        break;
    }
  }
}

// ---------------------------------------------------------------- tensors

/// A contiguous host tensor that owns its memory; converts to the Tensor view that ops take.
class TestTensor {
 public:
  TestTensor() = default;
  /// Zeros of a plain type, or uninitialized blocks filled with zero bytes.
  explicit TestTensor(const std::vector<int64_t>& shape, DType dtype = DType::f32)
      : view_(make_view(shape, dtype)) {
    const int64_t bytes = view_.numel() / block_size(dtype) * block_bytes(dtype);
    // 64 spare bytes so that an empty tensor has an address, and to align as Buffer does.
    storage_.assign(static_cast<size_t>(bytes) + 2 * Buffer::kAlignment, 0);
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    view_.data = storage_.data() + (Buffer::kAlignment - address % Buffer::kAlignment);
  }
  TestTensor(const std::vector<int64_t>& shape, const std::vector<float>& values,
             DType dtype = DType::f32)
      : TestTensor(shape, dtype) {
    SNAPKV_CHECK(static_cast<int64_t>(values.size()) == view_.numel());
    convert_values(values.data(), view_.numel(), dtype, view_.data);
  }
  TestTensor(const TestTensor& other) : TestTensor(other.shape(), other.view_.dtype) {
    std::memcpy(view_.data, other.view_.data, static_cast<size_t>(other.bytes()));
  }
  TestTensor& operator=(const TestTensor& other) {
    TestTensor copy(other);
    *this = std::move(copy);
    return *this;
  }
  TestTensor(TestTensor&&) = default;  // a moved vector keeps its memory
  TestTensor& operator=(TestTensor&&) = default;

  operator const Tensor&() const { return view_; }  // NOLINT: ops take views
  const Tensor& view() const { return view_; }
  void* data() const { return view_.data; }
  template <typename T = float>
  T* as() const {
    return static_cast<T*>(view_.data);
  }
  int64_t numel() const { return view_.numel(); }
  int64_t bytes() const {
    return view_.numel() / block_size(view_.dtype) * block_bytes(view_.dtype);
  }
  std::vector<int64_t> shape() const {
    return {view_.shape.begin(), view_.shape.begin() + view_.rank};
  }
  std::vector<float> values() const { return to_f32_values(data(), view_.dtype, numel()); }
  /// A copy in another type (rounded or quantized).
  TestTensor to(DType dtype) const { return TestTensor(shape(), values(), dtype); }

 private:
  static Tensor make_view(const std::vector<int64_t>& s, DType dtype) {
    static char none;
    switch (s.size()) {
      case 1:
        return Tensor(&none, dtype, {s[0]});
      case 2:
        return Tensor(&none, dtype, {s[0], s[1]});
      case 3:
        return Tensor(&none, dtype, {s[0], s[1], s[2]});
      default:
        SNAPKV_CHECK(s.size() == 4);
        return Tensor(&none, dtype, {s[0], s[1], s[2], s[3]});
    }
  }
  std::vector<char> storage_;
  Tensor view_;
};

/// normal(0, scale), the same for the same seed everywhere.
inline std::vector<float> random_values(int64_t n, uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 rng(seed * 0x9e3779b97f4a7c15u + 1);
  std::vector<float> v(static_cast<size_t>(n));
  const auto uniform = [&rng] { return (static_cast<double>(rng() >> 11) + 0.5) * 0x1p-53; };
  for (float& x : v) {  // Box-Muller: std::normal_distribution differs between libraries
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    x = scale * static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
  }
  return v;
}
inline TestTensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed,
                                DType dtype = DType::f32, float scale = 1.0f) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return TestTensor(shape, random_values(n, seed, scale), dtype);
}

// ---------------------------------------------------------------- comparison

/// |actual - expected| <= abs + rel * |expected|
struct Tolerance {
  double abs = 0.0;
  double rel = 0.0;
};

inline testing::AssertionResult all_close(const std::vector<float>& actual,
                                          const std::vector<float>& expected,
                                          const Tolerance& tolerance) {
  if (actual.size() != expected.size()) {
    return testing::AssertionFailure() << actual.size() << " values instead of " << expected.size();
  }
  size_t n_bad = 0, worst = 0;
  double worst_excess = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;  // infinities too
    const double limit = tolerance.abs + tolerance.rel * std::abs(e);
    const double error = std::abs(a - e);
    if (error <= limit) continue;  // false when either is NaN or infinite
    const double excess = std::isfinite(error) ? error - limit : HUGE_VAL;
    if (n_bad++ == 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (n_bad == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << n_bad << " of " << actual.size() << " values differ; worst at " << worst << ": "
         << actual[worst] << " instead of " << expected[worst];
}
inline testing::AssertionResult all_close(const TestTensor& actual, const TestTensor& expected,
                                          const Tolerance& tolerance) {
  if (actual.shape() != expected.shape()) {
    return testing::AssertionFailure() << "shape " << actual.view().shape_string() << " instead of "
                                       << expected.view().shape_string();
  }
  return all_close(actual.values(), expected.values(), tolerance);
}

/// ||actual - expected|| / ||expected||: for results that are rounded on the way (bf16, 8 bits).
inline double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  SNAPKV_CHECK(actual.size() == expected.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double d = static_cast<double>(actual[i]) - expected[i];
    difference += d * d;
    norm += static_cast<double>(expected[i]) * expected[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}
inline double relative_error(const TestTensor& actual, const TestTensor& expected) {
  return relative_error(actual.values(), expected.values());
}

// ---------------------------------------------------------------- backends

inline std::unique_ptr<Backend> make_ref() { return Backend::make({.device = Device::reference}); }
inline std::unique_ptr<Backend> make_cpu(int n_threads = 2, Compute compute = Compute::f32) {
  return Backend::make({.device = Device::cpu, .n_threads = n_threads, .compute = compute});
}

}  // namespace snapkv::test
