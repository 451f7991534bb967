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

}  // namespace
}  // namespace snapkv::test
