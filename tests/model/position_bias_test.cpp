// SPDX-License-Identifier: MIT
// Linear position biases as values of queries and keys: their product is slope * position at any
// position. llama_oracle_test.cpp compares models that have them with llama.cpp.
#include "model/blocks/position_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "format/gguf.h"
#include "model/model_spec.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"
#include "tests/support/tiny_file.h"

namespace snapkv::test {
namespace position_bias_tests {

/// slope[h] * pos as the widened queries and keys of a model's first layer compute it.
struct Biases {
  std::vector<std::vector<double>> scores;  // [n_head][n_pos]
  std::vector<float> keys;                  // the values that hold the position, of the first head

  Biases(const std::string& model, const std::vector<int32_t>& pos) {
    const GgufFile file = GgufFile::open(model_path(model));
    const ModelSpec spec = read_model_spec(file);
    std::vector<Buffer> owned;
    WeightLoader weights(file, owned);
    LayerLoader loader(spec, weights, 0);
    ActivationPlan plan;
    const RotationTable rotations;
    const BlockContext context{spec, rotations, plan};
    const PositionBias bias(context, loader);
    const auto backend = Backend::make({.device = "reference"});
    ActivationBuffer buffers;
    const auto n = static_cast<int64_t>(pos.size());
    buffers.ensure(*backend, plan, n, DType::f32);
    LayerPass pass;
    pass.backend = backend.get();
    pass.buffers = &buffers;
    pass.pos = pos;
    const LayerSpec& layer = spec.layers[0];
    const int64_t n_head = layer.n_head, n_kv = layer.state.n_head, d = layer.head_width();
    const Buffer zeros = Buffer::host(n * n_head * d * sizeof(float), "test");
    const Tensor q = zeros.view(DType::f32, {n, n_head, d});
    const Tensor k = zeros.view(DType::f32, {n, n_kv, d});
    std::fill_n(q.at<float>(0), q.numel(), 0.0f);
    const Tensor wide_q = bias.widen_queries(q, pass), wide_k = bias.widen_keys(k, pass);
    const int64_t wide = layer.state.head_dim_k;
    EXPECT_EQ(wide_q.shape[2], wide);
    for (int64_t h = 0; h < n_head; ++h) {
      std::vector<double>& of_head = scores.emplace_back();
      for (int64_t i = 0; i < n; ++i) {
        const float* const query = wide_q.at<const float>(i, h);
        const float* const key = wide_k.at<const float>(i, h * n_kv / n_head);
        double sum = 0.0;
        for (int64_t j = 0; j < wide; ++j) sum += static_cast<double>(query[j]) * key[j];
        of_head.push_back(sum * static_cast<double>(layer.scale));
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      const float* const key = wide_k.at<const float>(i, 0);
      keys.insert(keys.end(), key + d, key + wide);
    }
  }
};

const std::vector<int32_t> kPositions = {0, 1, 63, 64, 4095, 4096, 70'001, 1 << 20};

void expect_slopes(const std::string& model, const std::vector<double>& slopes) {
  SCOPED_TRACE(model);
  const Biases biases(model, kPositions);
  ASSERT_EQ(biases.scores.size(), slopes.size());
  for (size_t h = 0; h < slopes.size(); ++h) {
    for (size_t i = 0; i < kPositions.size(); ++i) {
      const double expected = slopes[h] * kPositions[i];
      EXPECT_NEAR(biases.scores[h][i], expected, 2e-5 * expected) << h << " " << kPositions[i];
    }
  }
}

TEST(PositionBiasTest, ScoresGrowWithTheKeysPosition) {
  expect_slopes("bloom", {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256});
  // 6 heads, at most 6: the series of 4 heads, then every second one of that of 8
  const auto power = [](double x) { return std::exp2(-x); };
  expect_slopes("mpt", {power(1.5), power(3), power(4.5), power(6), power(0.75), power(2.25)});
}

/// Whatever rounds keys to bf16 or f16 leaves positions as they are.
TEST(PositionBiasTest, KeysHoldPositionsInEightBits) {
  for (const float value : Biases("refact", {0, 63, 64 * 63, 4095, 200'000}).keys) {
    int exponent = 0;
    const float mantissa = std::frexp(value, &exponent);
    EXPECT_EQ(std::ldexp(mantissa, 8), std::trunc(std::ldexp(mantissa, 8))) << value;
    EXPECT_LE(value, 64.0f * 64.0f);
  }
}

TEST(PositionBiasTest, TheSpecSaysWhichLayersHaveThem) {
  const ModelInfo large = describe_model(model_path("baichuan-13b")).info;
  const ModelInfo small = describe_model(model_path("baichuan")).info;
  EXPECT_TRUE(large.spec->layers[0].position_bias);
  EXPECT_FALSE(large.layers[0].rotated);
  EXPECT_FALSE(small.spec->layers[0].position_bias);
  EXPECT_TRUE(small.layers[0].rotated);
  EXPECT_EQ(large.layers[0].head_dim, large.layers[0].value_dim + 8);
  expect_error(ErrorCode::kUsage, {"n_ctx", "16777217", "position biases", "16777216"},
               [] { Session session(load_model("bloom"), {.n_ctx = (1 << 24) + 1}); });
  // q8_0's scales would round positions: the width is never one that it takes
  Session f16(load_model("bloom"), {.n_ctx = 40});
  expect_error(ErrorCode::kUsage, {"kv_type", "q8_0", "multiple of 32", "24"},
               [] { Session session(load_model("bloom"), {.n_ctx = 40, .kv_type = DType::q8_0}); });
}

TEST(PositionBiasTest, SlopesMustBeNumbers) {
  TinyFile file = file_of("mpt");
  file.set("mpt.attention.max_alibi_bias", -1.0f);
  expect_mentions(load_error(file), {"mpt.attention.max_alibi_bias", "-1"});
}

}  // namespace position_bias_tests
}  // namespace snapkv::test
