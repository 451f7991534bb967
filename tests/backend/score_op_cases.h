// SPDX-License-Identifier: MIT
// The ops that scores of policies are made of (backend/ops.def), as one table of cases that every
// backend runs and compares with ref/: score_ops_test.cpp and cuda/scores_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/ops.h"
#include "tests/backend/op_test_util.h"

namespace snapkv::test {

struct ScoreOpCase {
  std::string name;
  std::function<TestTensor(Backend& backend)> run;  ///< uploads, computes, downloads the result
  Tolerance tolerance;
};

std::vector<ScoreOpCase> score_op_cases();

/// Compares every case whose name begins so on `backend` with ref/.
void expect_score_ops(Backend& backend, std::string_view prefix = "");

}  // namespace snapkv::test
