// SPDX-License-Identifier: MIT
// Helpers for the tests of src/backend and src/policy: tensors that own their memory (random,
// converted, quantized), and comparison with a tolerance.
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
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "base/half.h"
#include "base/tensor.h"
#include "bench/quantize.h"
#include "format/block_types.h"

namespace snapkv::test {

// ---------------------------------------------------------------- types

/// The weight types that are stored in blocks.
inline std::vector<DType> block_types() {
  std::vector<DType> types;
  for (const DType t : kWeightTypes) {
    if (block_size(t) > 1) types.push_back(t);
  }
  return types;
}

/// Whether a type's products are those of other superblocks but for how levels are read, so that
/// fewer sizes are enough to test them.
inline bool has_codebook(DType type) {
  return visit_weight_type(type, [](auto t) { return kHasPartWords<t.dtype>; });
}

/// Converts n values of any type to f32.
inline std::vector<float> to_f32_values(const void* data, DType dtype, int64_t n) {
  std::vector<float> out;
  if (dtype == DType::i32) {
    out.assign(static_cast<const int32_t*>(data), static_cast<const int32_t*>(data) + n);
    return out;
  }
  visit_weight_type(dtype, [&](auto type) {
    for (int64_t i = 0; i < n; ++i) out.push_back(value_at<type.dtype>(data, i));
  });
  return out;
}

/// Writes n f32 values as `dtype`; n must be a multiple of block_size(dtype).
inline void convert_values(const float* src, int64_t n, DType dtype, void* dst) {
  if (dtype != DType::i32) return quantize(dtype, src, n, dst);
  for (int64_t i = 0; i < n; ++i) static_cast<int32_t*>(dst)[i] = static_cast<int32_t>(src[i]);
}

// ---------------------------------------------------------------- tensors

/// A contiguous host tensor that owns its memory and converts to the Tensor view that ops take.
class TestTensor {
 public:
  TestTensor() = default;
  /// Zeros of a plain type, or uninitialized blocks filled with zero bytes.
  explicit TestTensor(const std::vector<int64_t>& shape, DType dtype = DType::f32)
      : view_(make_view(shape, dtype)) {
    const int64_t bytes = view_.numel() / block_size(dtype) * block_bytes(dtype);
    // 64 spare bytes, so that an empty tensor has an address, and to align the memory as Buffer
    // does.
    storage_.assign(bytes + 2 * Buffer::kAlignment, 0);
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
    std::memcpy(view_.data, other.view_.data, other.bytes());
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

/// Values of normal(0, scale) that are the same for a seed on every machine.
inline std::vector<float> random_values(int64_t n, uint64_t seed, float scale = 1.0f) {
  std::mt19937_64 rng(seed * 0x9e3779b97f4a7c15u + 1);
  std::vector<float> v(n);
  const auto uniform = [&rng] { return (static_cast<double>(rng() >> 11) + 0.5) * 0x1p-53; };
  for (float& x : v) {  // Box-Muller: std::normal_distribution differs between libraries
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    x = scale * static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
  }
  return v;
}
/// Made once and then copied: tests ask for the same tensor for every backend and instruction set.
inline TestTensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed,
                                DType dtype = DType::f32, float scale = 1.0f) {
  constexpr int64_t kMaxBytes = 1 << 28;
  static std::map<std::tuple<std::vector<int64_t>, uint64_t, DType, float>, TestTensor> made;
  static int64_t bytes = 0;
  const std::tuple key(shape, seed, dtype, scale);
  if (const auto at = made.find(key); at != made.end()) return at->second;
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  const TestTensor t = dtype == DType::f32
                           ? TestTensor(shape, random_values(n, seed, scale))
                           : random_tensor(shape, seed, DType::f32, scale).to(dtype);
  bytes += t.bytes();
  if (bytes > kMaxBytes) {
    made.clear();
    bytes = t.bytes();
  }
  return made.emplace(key, t).first->second;
}

/// A tensor in the memory of a backend, copied from a host tensor.
class DeviceTensor {
 public:
  DeviceTensor(Backend& backend, const TestTensor& t)
      : backend_(&backend),
        shape_(t),
        buffer_(backend.allocate(t.bytes(), "test tensor")),
        view_(t.view()) {
    backend.upload(buffer_.data(), t.data(), t.bytes());
    view_.data = buffer_.data();
  }
  operator const Tensor&() const { return view_; }  // NOLINT: ops take views
  const Tensor& view() const { return view_; }
  void* data() const { return view_.data; }
  /// The current content.
  TestTensor host() const {
    TestTensor t = shape_;
    backend_->download(t.data(), view_.data, t.bytes());
    return t;
  }

 private:
  Backend* backend_;
  TestTensor shape_;
  Buffer buffer_;
  Tensor view_;
};

// ---------------------------------------------------------------- comparison

/// Allows |actual - expected| <= abs + rel * |expected|.
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
    if (error <= limit) continue;  // false if either is NaN or infinite
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

/// ||actual - expected|| / ||expected||, for results that are rounded in between (bf16, 8 bits).
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

inline std::unique_ptr<Backend> make_ref() { return Backend::make({.device = "reference"}); }
inline std::unique_ptr<Backend> make_cpu(int n_threads = 2, Compute compute = Compute::f32) {
  return Backend::make({.device = "cpu", .n_threads = n_threads, .compute = compute});
}

}  // namespace snapkv::test
