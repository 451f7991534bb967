// SPDX-License-Identifier: MIT
// The result of pack() for weights of every type on a CUDA device.
#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

// d * scale * level - dmin * min is exact except for f32's rounding of both products.
constexpr Tolerance kF32{2e-6, 1e-6};

class CudaWeights : public CudaTest {};

// pack() leaves a matrix of the compute type as it is and expands all others.
TEST_F(CudaWeights, Pack) {
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    const auto backend = make(compute);
    for (const DType type : kWeightTypes) {
      for (const auto& [n_out, n_in] : {std::pair{1, 256}, {7, 512}, {33, 768}, {3, 35}}) {
        if (n_in % block_size(type) != 0) continue;
        const TestTensor weight = random_tensor({n_out, n_in}, 2, type);
        const DeviceTensor on_device(*backend, weight);
        PackedWeight packed;
        ops::pack(*backend, on_device, packed);
        TestTensor out({n_out, n_in}, backend->compute_dtype());
        backend->download(out.data(), packed.storage.data(), static_cast<size_t>(out.bytes()));
        const bool exact = compute == Compute::f32;
        EXPECT_TRUE(all_close(out.values(), weight.values(),
                              exact ? kF32 : Tolerance{1e-6, 4e-3}))  // 8 bits: 2^-8
            << name(type) << " [" << n_out << ", " << n_in << "]";
      }
    }
  }
}

#ifdef SNAPKV_CUDA_ON_HOST_TESTS
// Weights without room on the device are sent when they are used: those of a call with more
// products than are kept there at a time too.
TEST_F(CudaWeights, ThatAreStreamedServeEveryProductOfACall) {
  constexpr int64_t kIn = 64, kOut = 24, kProducts = 8;
  std::vector<TestTensor> weights, biases, out(kProducts, TestTensor({3, kOut})), expected = out;
  std::vector<Tensor> placed;
  for (uint32_t i = 0; i < kProducts; ++i) {
    weights.push_back(random_tensor({kOut, kIn}, 10 + i, DType::q8_0));
    biases.push_back(random_tensor({kOut}, 30 + i));
  }
  for (uint32_t i = 0; i < kProducts; ++i) {
    placed.push_back(weights[i].view());
    placed.push_back(biases[i].view());
  }
  cuda_on_host::limit_memory(cuda_on_host::allocated_memory() + 1);
  cuda().place_weights(placed);
  cuda_on_host::limit_memory(SIZE_MAX);
  const TestTensor x = random_tensor({3, kIn}, 1);
  const DeviceTensor on_device = device(x);
  std::vector<DeviceTensor> results;
  std::vector<Projection> projections, reference_projections;
  for (size_t i = 0; i < kProducts; ++i) {
    results.push_back(device(out[i]));
    projections.push_back({.w = weights[i].view(), .bias = biases[i].view(), .out = results[i]});
    reference_projections.push_back(
        {.w = weights[i].view(), .bias = biases[i].view(), .out = expected[i].view()});
  }
  ops::project(cuda(), on_device, projections);
  ops::project(reference(), x.view(), reference_projections);
  for (size_t i = 0; i < kProducts; ++i) {
    EXPECT_LT(relative_error(results[i].host(), expected[i]), 0.012) << i;  // of 8 bits
  }
}
#endif

}  // namespace
}  // namespace snapkv::test
