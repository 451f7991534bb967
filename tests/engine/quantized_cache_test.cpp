// SPDX-License-Identifier: MIT
// Sessions whose cache has the type q8_0: rows, logits and bytes beside those of f16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace quantized_cache_tests {

// Keys and values have errors of up to half of 1/127 of their block's largest value in every layer;
// logits spread over about 2. The largest difference seen is 0.14.
constexpr double kQ8Tolerance = 0.3;

TEST(QuantizedCacheTest, ReadsAndSelectsAsF16AndDecodesCloseToIt) {
  const auto ids = generated_ids(300, kVocab, 20);
  for (const SessionOptions& options : {full_options(), snapkv_options(48), snapkv_options(400)}) {
    Session f16(load_model("tiny-f32"), of_type(options, DType::f16));
    Session q8(load_model("tiny-f32"), of_type(options, DType::q8_0));
    for (Session* s : {&f16, &q8}) s->prefill(ids);
    EXPECT_EQ(copy(q8.logits()), copy(f16.logits()));  // the scratch layer is the same
    for (int il = 0; il < 4; ++il) {
      for (int h = 0; h < 2; ++h) {
        EXPECT_EQ(q8.cached_positions(il, h), f16.cached_positions(il, h));
      }
    }
    for (int32_t token : {7, 300, 41}) {
      for (Session* s : {&f16, &q8}) s->decode(token);
      const double difference = max_difference(q8.logits(), f16.logits());
      EXPECT_GT(difference, 0);  // otherwise the cache is not of this type
      EXPECT_LT(difference, kQ8Tolerance);
    }
    // A further turn begins with the quantized rows.
    const auto more = generated_ids(60, kVocab, 21);
    for (Session* s : {&f16, &q8}) s->prefill(more);
    EXPECT_LT(max_difference(q8.logits(), f16.logits()), kQ8Tolerance);
    for (Session* s : {&f16, &q8}) s->decode(5);
    EXPECT_EQ(q8.n_past(), 364);
    // This turn's queries differ a little, so where rows are evicted, other ones may be.
    bool same_rows = true;
    for (int il = 0; il < 4; ++il) {
      for (int h = 0; h < 2; ++h) {
        same_rows = same_rows && q8.cached_positions(il, h) == f16.cached_positions(il, h);
      }
    }
    EXPECT_TRUE(same_rows || options.kv.budget == 48);
    if (same_rows) {
      EXPECT_LT(max_difference(q8.logits(), f16.logits()), kQ8Tolerance);
    }
  }
}

TEST(QuantizedCacheTest, TakesExactlyTheBytesOfItsBlocks) {
  const size_t row = 34 + 34 + 4, scratch_row = 2 * 32 * 2 + 4;  // head_dim 32: one block each
  const int64_t n = 600;
  SessionOptions options = of_type(snapkv_options(64), DType::q8_0);
  options.decode_reserve = 1;
  Session session(load_model("tiny-f32"), options);
  session.prefill(generated_ids(n, kVocab, 10));
  EXPECT_EQ(session.stats().kv_bytes, 4u * 2u * 65u * row);
  EXPECT_EQ(session.stats().kv_bytes_used, 4u * 2u * 64u * row);
  EXPECT_EQ(session.stats().kv_bytes_full, 4u * 2u * 600u * row);
  EXPECT_EQ(session.stats().kv_bytes_peak, 2u * 600u * scratch_row + 4u * 2u * 65u * row);
  EXPECT_EQ(plan_memory(load_model("tiny-f32")->info(), options, n, DType::f32).kv_peak(),
            session.stats().kv_bytes_peak);
  // If everything is kept, the f16 scratch layer cannot become the cache: both exist at the same
  // time.
  options.kv.name = "full";
  Session full(load_model("tiny-f32"), options);
  full.prefill(generated_ids(n, kVocab, 10));
  EXPECT_EQ(full.stats().kv_bytes, 4u * 2u * 601u * row);
  EXPECT_EQ(full.stats().kv_bytes_peak, 2u * 600u * scratch_row + 4u * 2u * 601u * row);
  EXPECT_EQ(plan_memory(load_model("tiny-f32")->info(), options, n, DType::f32).kv_peak(),
            full.stats().kv_bytes_peak);
}

TEST(QuantizedCacheTest, BatchesAndSharedPromptsEqualSeparateOnes) {
  const auto ids = generated_ids(200, kVocab, 22);
  const std::vector<SessionOptions> options = {of_type(full_options(), DType::q8_0),
                                               of_type(snapkv_options(40), DType::q8_0),
                                               of_type(snapkv_options(64), DType::q8_0)};
  std::vector<Session> alone, together;
  for (const SessionOptions& o : options) {
    alone.emplace_back(load_model("tiny-q8_0"), o);
    together.emplace_back(load_model("tiny-q8_0"), o);
  }
  std::vector<Session*> all;
  for (Session& s : together) all.push_back(&s);
  prefill_many(all, ids);
  for (Session& s : alone) s.prefill(ids);
  for (int32_t step = 0; step < 3; ++step) {
    const std::vector<int32_t> tokens = {30 + step, 40 + step, 50 + step};
    decode_batch(all, tokens);
    for (size_t i = 0; i < 3; ++i) alone[i].decode(tokens[i]);
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(alone[i].cached_positions(1, 1), together[i].cached_positions(1, 1));
    // One level of a quantized activation or row may flip between the kernels for 1 and 3 rows.
    EXPECT_LT(max_difference(alone[i].logits(), together[i].logits()), 1e-2) << i;
  }
  Session f16(load_model("tiny-q8_0"), full_options());
  f16.prefill(ids);
  all = {&together[0], &f16};
  EXPECT_EQ(error_of([&] { decode_batch(all, std::vector<int32_t>{5, 5}); }), ErrorCode::kUsage);
}

TEST(QuantizedCacheTest, NeedsWholeBlocks) {
  RandomModelShape shape = random_model_shape("tiny-gqa");
  shape.head_dim = 40;
  const std::string path = testing::TempDir() + "snapkv_head_dim_40.gguf";
  write_random_model(path, shape, {});
  const auto model = Model::load({.path = path});
  expect_error(ErrorCode::kUsage, {"q8_0", "32", "40"},
               [&] { Session s(model, of_type(full_options(), DType::q8_0)); });
  const SessionOptions options = of_type(full_options(), DType::q8_0);
  expect_error(ErrorCode::kUsage, {"q8_0", "32", "40"},
               [&] { plan_memory(model->info(), options, 100, DType::f32); });
  std::remove(path.c_str());
}

}  // namespace quantized_cache_tests
}  // namespace snapkv::test
