// SPDX-License-Identifier: MIT
// Norm, rotation and activation on a CUDA device against ref/.
#include <cmath>
#include <numeric>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

constexpr Tolerance kF32{1e-6, 2e-6};   // order of f32 sums
constexpr Tolerance kBf16{1e-6, 8e-3};  // one rounding to 8 bits

class CudaRowwise : public CudaTest {};

TEST_F(CudaRowwise, RmsNorm) {
  for (const int64_t d : {1, 64, 100, 4096}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const TestTensor x = random_tensor({5, d}, 1), weight = random_tensor({d}, 2);
      TestTensor expected({5, d}, dtype);
      ops::rms_norm(reference(), x, weight, 1e-5f, expected);
      both_orders([&] {
        const DeviceTensor out = device(TestTensor({5, d}, dtype));
        ops::rms_norm(cuda(), device(x), device(weight), 1e-5f, out);
        EXPECT_TRUE(all_close(out.host(), expected, dtype == DType::f32 ? kF32 : kBf16)) << d;
      });
    }
  }
}

TEST_F(CudaRowwise, Rope) {
  const std::vector<int32_t> pos = {0, 3, 1000, 999'999};
  for (const RopeLayout layout : {RopeLayout::norm, RopeLayout::neox}) {
    for (const int64_t n_pairs : {4, 32}) {
      std::vector<double> inv_freq;
      for (int64_t i = 0; i < n_pairs; ++i) {
        inv_freq.push_back(std::pow(10000.0, -static_cast<double>(i) / 32));
      }
      TestTensor x = random_tensor({4, 3, 64}, 3);
      const DeviceTensor on_device = device(x);
      ops::rope(cuda(), on_device, pos, {inv_freq, layout, 1.25f});
      ops::rope(reference(), x, pos, {inv_freq, layout, 1.25f});
      EXPECT_TRUE(all_close(on_device.host(), x, {1e-6, 1e-6}));
    }
  }
}

TEST_F(CudaRowwise, Activate) {
  for (const Activation f : {Activation::silu, Activation::gelu_tanh}) {
    for (const DType in : {DType::f32, DType::bf16}) {
      for (const DType out_type : {DType::f32, DType::bf16}) {
        const TestTensor gate = random_tensor({7, 333}, 4, in, 4.0f);
        const TestTensor up = random_tensor({7, 333}, 5, in);
        const Tolerance tolerance = out_type == DType::f32 ? kF32 : kBf16;
        const TestTensor expected({7, 333});
        ops::activate(reference(), f, gate.to(DType::f32), up.to(DType::f32), expected);
        const DeviceTensor out = device(TestTensor({7, 333}, out_type));
        ops::activate(cuda(), f, device(gate), device(up), out);
        EXPECT_TRUE(all_close(out.host(), expected, tolerance));
        ops::activate(reference(), f, gate.to(DType::f32), {}, expected);
        ops::activate(cuda(), f, device(gate), {}, out);
        EXPECT_TRUE(all_close(out.host(), expected, tolerance));
      }
    }
  }
}

TEST_F(CudaRowwise, LayerNorm) {
  for (const int64_t d : {1, 64, 100, 4096}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const TestTensor x = random_tensor({6, d}, 1), bias = random_tensor({d}, 3);
      const TestTensor one = random_tensor({d}, 2), heads = random_tensor({3, d}, 2);
      for (const TestTensor& weight : {one, heads}) {
        TestTensor expected({6, d}, dtype), without = expected;
        ops::layer_norm(reference(), x, weight, bias, 1e-5f, expected);
        ops::layer_norm(reference(), x, weight, {}, 1e-5f, without);
        const Tolerance tolerance = dtype == DType::f32 ? Tolerance{1e-5, 1e-5} : kBf16;
        both_orders([&] {
          const DeviceTensor out = device(TestTensor({6, d}, dtype));
          ops::layer_norm(cuda(), device(x), device(weight), device(bias), 1e-5f, out);
          EXPECT_TRUE(all_close(out.host(), expected, tolerance)) << d;
          ops::layer_norm(cuda(), device(x), device(weight), {}, 1e-5f, out);
          EXPECT_TRUE(all_close(out.host(), without, tolerance)) << d;
        });
      }
    }
  }
}

TEST_F(CudaRowwise, AddScaleSoftcap) {
  TestTensor x = random_tensor({5, 333}, 1, DType::f32, 10.0f);
  const TestTensor y = random_tensor({5, 333}, 2);
  const DeviceTensor on_device = device(x);
  const std::vector<float> factors = {1, 2, -3, 0.5f, 4}, one = {1.5f};
  const auto run = [&](Backend& backend, const Tensor& t, const Tensor& other) {
    ops::add(backend, t, other, 0.22f);
    ops::scale(backend, t, factors);
    ops::scale(backend, t, one);
    ops::softcap(backend, t, 7.0f);
  };
  run(reference(), x, y);
  run(cuda(), on_device, device(y));
  EXPECT_TRUE(all_close(on_device.host(), x, {5e-6, 5e-6}));
}

}  // namespace
}  // namespace snapkv::test
