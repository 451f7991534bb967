// SPDX-License-Identifier: MIT
// The C API gives the same results as compress.h, and messages instead of exceptions.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "snapkv/compress.h"
#include "snapkv/snapkv.h"

namespace snapkv {
namespace c_api_tests {

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

std::string set_error(snapkv_policy& policy, const char* param, const char* value) {
  char error[300] = "";
  const int code = snapkv_policy_set(&policy, param, value, error, sizeof error);
  EXPECT_EQ(code == 0, *error == '\0') << error;
  EXPECT_TRUE(code == SNAPKV_OK || code == SNAPKV_ERROR_USAGE) << code;
  return error;
}

// A value other than the parameter's default.
PolicyValue other_value(const PolicyParam& param) {
  switch (param.type) {
    case PolicyParam::Type::boolean:
      return !std::get<bool>(param.default_value);
    case PolicyParam::Type::integer:
      return std::get<int64_t>(param.default_value) + 2;
    case PolicyParam::Type::real:
      return 0.5;
    default:  // a word
      break;
  }
  return param.words[param.default_value == PolicyValue(param.words[0]) ? 1 : 0];
}

// All parameters of all policies; the compressor's selections and errors show that they were set.
TEST(CApi, SetsEveryParameterOfEveryPolicy) {
  for (const PolicyInfo& info : all_policies()) {
    snapkv_policy policy = snapkv_default_policy();
    policy.name = info.name.c_str();
    for (const PolicyParam& param : info.params) {
      const std::string value = value_text(other_value(param));
      EXPECT_EQ(set_error(policy, param.name.c_str(), value.c_str()), "") << info.name;
    }
    char error[300] = "";
    snapkv_compressor* c = snapkv_compressor_new(&policy, SNAPKV_CPU, nullptr, error, sizeof error);
    EXPECT_NE(c, nullptr) << error;
    snapkv_compressor_free(c);
    EXPECT_NE(set_error(policy, "nothing", "1").find("\"" + info.name + "\" has no parameter"),
              std::string::npos);
  }
}

TEST(CApi, SetWritesTheFieldsThatThereAre) {
  snapkv_policy policy = snapkv_default_policy();
  EXPECT_EQ(set_error(policy, "budget", "30"), "");
  EXPECT_EQ(set_error(policy, "ratio", "0.25"), "");
  EXPECT_EQ(set_error(policy, "window_size", "8"), "");
  EXPECT_EQ(set_error(policy, "sinks", "3"), "");
  EXPECT_EQ(set_error(policy, "kernel_size", "15"), "");
  EXPECT_EQ(set_error(policy, "pooling", "avg"), "");
  EXPECT_EQ(set_error(policy, "group", "max"), "");
  EXPECT_EQ(set_error(policy, "critical", "true"), "");
  EXPECT_EQ(policy.budget, 30);
  EXPECT_EQ(policy.ratio, 0.25);
  EXPECT_EQ(policy.window_size, 8);
  EXPECT_EQ(policy.sinks, 3);
  const std::string params = policy.params;
  EXPECT_EQ(params, "critical=true group=max kernel_size=15 pooling=avg");
  EXPECT_EQ(set_error(policy, "kernel_size", "4"),
            "kernel_size is 4; it must be a whole number, odd and from 1 to 65535");
  EXPECT_EQ(policy.params, params) << "as before";
  std::snprintf(policy.params, sizeof policy.params, "critical");
  EXPECT_EQ(set_error(policy, "sinks", "3"),
            "policy.params: 'critical' has no value, expected NAME=VALUE");
}

TEST(CApi, ParametersChangeTheSelection) {
  Example e;
  e.policy.name = "random";
  const auto select = [&] {
    char error[200] = "";
    snapkv_compressor* c =
        snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error);
    EXPECT_NE(c, nullptr) << error;
    std::vector<int32_t> rows(kHeadsKv * 30), n(kHeadsKv);
    EXPECT_EQ(snapkv_select(c, &e.layer, 30, rows.data(), n.data(), error, sizeof error), 0);
    snapkv_compressor_free(c);
    return rows;
  };
  const std::vector<int32_t> first = select();
  EXPECT_EQ(set_error(e.policy, "seed", "7"), "");
  EXPECT_NE(select(), first);
  EXPECT_EQ(set_error(e.policy, "seed", "0"), "");
  EXPECT_EQ(select(), first);
  char error[200] = "";
  std::string("n_future=3").copy(e.policy.params, sizeof e.policy.params);
  EXPECT_EQ(snapkv_compressor_new(&e.policy, SNAPKV_CPU, nullptr, error, sizeof error), nullptr);
  EXPECT_NE(std::string(error).find("n_future"), std::string::npos) << error;
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
  EXPECT_EQ(std::string(error), "dtype is ");  // cut off, but terminated
  snapkv_compressor_free(c);
}

}  // namespace c_api_tests
}  // namespace snapkv
