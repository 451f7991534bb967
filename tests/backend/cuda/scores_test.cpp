// SPDX-License-Identifier: MIT
// The ops of scores on a CUDA device against ref/: the table of tests/backend/score_op_cases.h.
#include "tests/backend/cuda/cuda_test_util.h"
#include "tests/backend/score_op_cases.h"

namespace snapkv::test {
namespace {

TEST_F(CudaTest, ScoreOps) {
  both_orders([&] { expect_score_ops(cuda()); });
}

}  // namespace
}  // namespace snapkv::test
