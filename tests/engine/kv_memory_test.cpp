// SPDX-License-Identifier: MIT
// SessionOptions::kv_memory: a budget given in bytes.
#include <gtest/gtest.h>

#include "cache/kv_layer.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace kv_memory_tests {

SessionOptions with_memory(size_t bytes, const std::string& policy = "snapkv",
                           DType type = DType::f16) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.window_size = 16;
  options.kv_memory = bytes;
  options.kv_type = type;
  options.decode_reserve = 20;
  return options;
}

/// The bytes of one row in every layer and head of the tiny models.
size_t row(DType type) {
  return 4 * StateShape{.n_head = 2, .head_dim_k = 32, .head_dim_v = 32}.bytes(type, 1);
}

TEST(KvMemoryTest, MakesTheLargestBudgetThatFits) {
  const ModelInfo& info = load_model("tiny-f32")->info();
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    for (const size_t bytes : {100 * row(type), 100 * row(type) + 1, 101 * row(type) - 1}) {
      const SessionOptions options = resolve_options(with_memory(bytes, "snapkv", type), info);
      EXPECT_EQ(options.kv.budget, 80);  // plus 20 of decode_reserve
      const MemoryPlan plan = plan_memory(info, with_memory(bytes, "snapkv", type), 500);
      EXPECT_EQ(plan.budget, 80);
      EXPECT_EQ(plan.kv_kept, 100 * row(type));
    }
    EXPECT_EQ(resolve_options(with_memory(101 * row(type), "snapkv", type), info).kv.budget, 81);
  }
}

TEST(KvMemoryTest, EveryPolicyKeepsItsCacheWithin) {
  for (const std::string& policy : policy_names()) {
    if (policy == "full") continue;
    SCOPED_TRACE(policy);
    for (const size_t bytes : {97 * row(DType::f16), 101 * row(DType::f16) + 7}) {
      Session session(load_model("tiny-f32"), with_memory(bytes, policy));
      session.prefill(generated_ids(250, kVocab, 1));
      EXPECT_LE(session.stats().kv_bytes, bytes);
      EXPECT_GT(session.stats().kv_bytes, bytes - 4 * row(DType::f16));
      for (int i = 0; i < 20; ++i) session.decode(5 + i);  // the reserve
      EXPECT_LE(session.stats().kv_bytes, bytes);
      if (policy_info(policy).shares_layers) continue;  // keeps later turns whole
      session.prefill(generated_ids(30, kVocab, 2));
      EXPECT_LE(session.stats().kv_bytes, bytes);
    }
  }
}

TEST(KvMemoryTest, EqualsTheSessionOfThatBudget) {
  SessionOptions by_rows = with_memory(0);
  by_rows.kv.budget = 60;
  Session a(load_model("tiny-f32"), by_rows);
  Session b(load_model("tiny-f32"), with_memory(80 * row(DType::f16)));
  Session full(load_model("tiny-f32"), with_memory(80 * row(DType::f16), "full"));
  std::vector<Session*> all = {&a, &b, &full};
  prefill_many(all, generated_ids(200, kVocab, 3));
  EXPECT_EQ(b.options().kv.budget, 60);
  EXPECT_EQ(a.cached_positions(2, 1), b.cached_positions(2, 1));
  EXPECT_EQ(full.cached_positions(2, 1).size(), 200u);  // "full" has no budget
}

TEST(KvMemoryTest, NamesTheLeastThatWorks) {
  const ModelInfo& info = load_model("tiny-f32")->info();
  // Window 16, 4 sinks, 1 row, 20 of the reserve.
  const size_t least = 41 * row(DType::f16);
  expect_error(ErrorCode::kUsage, {"kv_memory", std::to_string(least - 1), std::to_string(least)},
               [&] { resolve_options(with_memory(least - 1, "streaming-llm"), info); });
  EXPECT_EQ(resolve_options(with_memory(least, "streaming-llm"), info).kv.budget, 21);
  EXPECT_EQ(resolve_options(with_memory(least), info).kv.budget, 21);
  EXPECT_EQ(resolve_options(with_memory(least - row(DType::f16)), info).kv.budget, 20);
  SessionOptions both = with_memory(1 << 20);
  both.kv.ratio = 0.5;
  expect_error(ErrorCode::kUsage, {"kv_memory", "ratio"}, [&] { resolve_options(both, info); });
  SessionOptions bad = with_memory(1 << 20);
  bad.kv.params["kernel_size"] = 4;
  expect_error(ErrorCode::kUsage, {"kernel_size"}, [&] { resolve_options(bad, info); });
}

}  // namespace kv_memory_tests
}  // namespace snapkv::test
