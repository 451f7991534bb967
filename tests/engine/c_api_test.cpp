// SPDX-License-Identifier: MIT
// The C API gives what compress.h gives, and messages instead of exceptions.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "snapkv/compress.h"
#include "snapkv/snapkv.h"

namespace snapkv {
namespace {

constexpr int64_t kTokens = 120, kHeads = 4, kHeadsKv = 2, kDim = 16, kWindow = 8;

struct Example {
  std::vector<float> q, k;
  snapkv_layer layer{};
  snapkv_policy policy = snapkv_default_policy();

  Example() {
    uint32_t state = 7;
    const auto draw = [&] {
      state = state * 1664525 + 1013904223;
      return static_cast<float>(state >> 8) / (1 << 23) - 1.0f;
    };
    for (int64_t i = 0; i < kWindow * kHeads * kDim; ++i) q.push_back(draw());
    for (int64_t i = 0; i < kTokens * kHeadsKv * kDim; ++i) k.push_back(draw());
    layer.n_tokens = kTokens, layer.n_window = kWindow;
    layer.n_head = kHeads, layer.n_head_kv = kHeadsKv, layer.head_dim = kDim;
    layer.q = {q.data(), SNAPKV_F32, kDim, kHeads * kDim};
    layer.k = {k.data(), SNAPKV_F32, kDim, kHeadsKv * kDim};
    layer.n_layer = 1;
    policy.budget = 30;
    policy.window_size = kWindow;
  }
};

TEST(CApi, SelectsAndGathersWhatCompressorDoes) {
  Example e;
  char error[200] = "";
  snapkv_compressor* c = snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error);
  ASSERT_NE(c, nullptr) << error;
  const int64_t capacity = snapkv_max_kept(c, &e.layer);
  EXPECT_EQ(capacity, 30);
  snapkv_layer wrong = e.layer;
  wrong.n_layer = 0;
  EXPECT_EQ(snapkv_max_kept(c, &wrong), 0);
  std::vector<int32_t> rows(kHeadsKv * 30), n(kHeadsKv);
  ASSERT_EQ(snapkv_select(c, &e.layer, capacity, rows.data(), n.data(), error, sizeof error), 0)
      << error;
  std::vector<float> kept(kHeadsKv * 30 * kDim);
  const snapkv_view dst = {kept.data(), SNAPKV_F32, 30 * kDim, kDim};
  ASSERT_EQ(snapkv_gather(c, &e.layer, &e.layer.k, capacity, rows.data(), n.data(), &dst, error,
                          sizeof error),
            0)
      << error;
  snapkv_compressor_free(c);

  LayerView layer;
  layer.n_tokens = kTokens, layer.n_window = kWindow;
  layer.n_head = kHeads, layer.n_head_kv = kHeadsKv, layer.head_dim = kDim;
  layer.q = {e.q.data(), DType::f32, kDim, kHeads * kDim};
  layer.k = {e.k.data(), DType::f32, kDim, kHeadsKv * kDim};
  const KvSelection expected = Compressor({.budget = 30, .window_size = kWindow}).select(layer);
  for (size_t h = 0; h < kHeadsKv; ++h) {
    ASSERT_EQ(n[h], 30);
    EXPECT_TRUE(std::equal(expected[h].begin(), expected[h].end(), rows.begin() + h * 30));
    for (size_t i = 0; i < 30; ++i) {
      const float* from =
          e.k.data() + (rows[h * 30 + i] * kHeadsKv + static_cast<int64_t>(h)) * kDim;
      EXPECT_TRUE(std::equal(from, from + kDim, kept.data() + (h * 30 + i) * kDim));
    }
  }
}

TEST(CApi, HeadsThatShareABudgetNeedRoomForMore) {
  Example e;
  e.policy.name = "ada-snapkv";
  char error[200] = "";
  snapkv_compressor* c = snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error);
  ASSERT_NE(c, nullptr) << error;
  const int64_t capacity = snapkv_max_kept(c, &e.layer);
  EXPECT_EQ(capacity, 30 * kHeadsKv);
  std::vector<int32_t> rows(static_cast<size_t>(capacity) * kHeadsKv), n(kHeadsKv);
  ASSERT_EQ(snapkv_select(c, &e.layer, capacity, rows.data(), n.data(), error, sizeof error), 0)
      << error;
  EXPECT_EQ(n[0] + n[1], 30 * kHeadsKv);
  EXPECT_NE(n[0], n[1]);
  snapkv_compressor_free(c);
}

TEST(CApi, ErrorsAreCodesAndMessages) {
  Example e;
  char error[200] = "";
  e.policy.name = "nothing";
  EXPECT_EQ(snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("nothing"), std::string::npos) << error;
  e.policy.name = nullptr;
  EXPECT_EQ(snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("policy.name"), std::string::npos) << error;
  e.policy.name = "snapkv";
  EXPECT_EQ(snapkv_compressor_new(&e.policy, 7, nullptr, nullptr, 0), nullptr);

  snapkv_compressor* c = snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error);
  ASSERT_NE(c, nullptr);
  std::vector<int32_t> rows(kHeadsKv * 30), n(kHeadsKv);
  EXPECT_EQ(snapkv_select(c, &e.layer, 20, rows.data(), n.data(), error, sizeof error),
            SNAPKV_ERROR_USAGE);
  EXPECT_NE(std::string(error).find("capacity is 20"), std::string::npos) << error;
  e.layer.k.dtype = 9;
  EXPECT_EQ(snapkv_select(c, &e.layer, 30, rows.data(), n.data(), error, 10), SNAPKV_ERROR_USAGE);
  EXPECT_EQ(std::string(error), "dtype is ");  // cut, with its end
  snapkv_compressor_free(c);
}

}  // namespace
}  // namespace snapkv
