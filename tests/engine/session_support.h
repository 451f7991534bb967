// SPDX-License-Identifier: MIT
// What tests of sessions share: options, and comparisons of logits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::test {

inline constexpr int64_t kVocab = 512;  // of the tiny models

inline SessionOptions full_options() {
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f32;
  return options;
}

inline SessionOptions snapkv_options(int64_t budget, int window = 16) {
  SessionOptions options = full_options();
  options.kv.name = "snapkv";
  options.kv.budget = budget;
  options.kv.window_size = window;
  return options;
}

inline SessionOptions of_type(SessionOptions options, DType kv_type) {
  options.kv_type = kv_type;
  return options;
}

inline std::vector<float> copy(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

inline double max_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double max = 0;
  for (size_t i = 0; i < a.size(); ++i) max = std::max<double>(max, std::abs(a[i] - b[i]));
  return max;
}

template <typename F>
ErrorCode error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kRuntime;
}

}  // namespace snapkv::test
