// SPDX-License-Identifier: MIT
// Helpers for the tests of src/backend/cuda. The tests run on the device in a build with CUDA, and
// otherwise on the host (tests/support/cuda_on_host). ref/ gives the expected results.
//
//   TEST_F(CudaTest, RmsNorm) {
//     const TestTensor x = random_tensor({5, 64}, 1);
//     DeviceTensor on_device = device(x), out = device(TestTensor({5, 64}));
//     both_orders([&] { ops::rms_norm(cuda(), on_device, device(weight), eps, out); });
//     EXPECT_TRUE(all_close(out.host(), expected, ...));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "backend/ops.h"
#include "base/error.h"
#include "tests/backend/op_test_util.h"
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
#include "tests/support/cuda_on_host/host_device.h"
#include "tests/support/cuda_on_host/register_on_host.h"
#endif

namespace snapkv::test {

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
    register_on_host();
    backend_ = make(Compute::automatic);
#else
    try {
      backend_ = make(Compute::automatic);
    } catch (const Error& e) {
      GTEST_SKIP() << "NOT TESTED: " << e.what();
    }
#endif
  }
  static std::unique_ptr<Backend> make(Compute compute) {
    BackendOptions options;
    options.device = "cuda";
    options.compute = compute;
    return Backend::make(options);
  }
  /// The backend with bf16 products.
  Backend& cuda() { return *backend_; }
  Backend& reference() { return *reference_; }
  DeviceTensor device(const TestTensor& t) { return DeviceTensor(cuda(), t); }

  /// Runs `check`; on the host twice, with the threads of a block in both orders.
  static void both_orders(const std::function<void()>& check) {
    check();
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
    cuda_on_host::reverse_threads(true);
    check();
    cuda_on_host::reverse_threads(false);
#endif
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> reference_ = [] {
    BackendOptions options;
    options.device = "reference";
    return Backend::make(options);
  }();
};

}  // namespace snapkv::test
