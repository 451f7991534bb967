// SPDX-License-Identifier: MIT
// What tests of sessions share: options, and comparisons of logits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "snapkv/engine.h"
#include "tests/support/test_models.h"

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

/// A session with a prompt of n_prompt tokens, saved to `path`, goes on from the file as if it had
/// not been saved: with every row, and with 60 of them and a limit.
inline void expect_sessions_come_back(const std::shared_ptr<const Model>& model, int64_t n_prompt,
                                      const std::string& path) {
  const auto text = [&](int64_t n, uint32_t seed) {
    return generated_ids(n, model->info().n_vocab, seed);
  };
  for (SessionOptions options : {full_options(), snapkv_options(60)}) {
    options.kv_decode_limit = options.kv.name == "full" ? 0 : 80;
    Session session(model, options), loaded(model, options);
    session.prefill(text(n_prompt, 1));
    for (const int32_t id : text(7, 2)) session.decode(id);
    session.save(path);
    loaded.load(path);
    EXPECT_EQ(loaded.stats().kv_bytes_used, session.stats().kv_bytes_used);
    for (const int32_t id : text(30, 3)) {
      session.decode(id);
      loaded.decode(id);
      ASSERT_EQ(copy(session.logits()), copy(loaded.logits()));
    }
    session.prefill(text(40, 4));
    loaded.prefill(text(40, 4));
    EXPECT_EQ(copy(session.logits()), copy(loaded.logits()));
  }
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
