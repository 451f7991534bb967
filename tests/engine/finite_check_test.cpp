// SPDX-License-Identifier: MIT
// A model with NaN or infinite weights never gives logits, attention or kept rows: every call
// throws, says what it found where, and leaves its session as it was.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/finite.h"
#include "format/gguf.h"
#include "snapkv/compress.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/poisoned_model.h"
#include "tests/support/processor.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace finite_check_tests {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(FindNonFinite, CountsAndNamesTheFirst) {
  EXPECT_FALSE(find_non_finite({}));
  for (const size_t n : {1, 7, 8, 9, 64, 1001}) {
    std::vector<float> values(n, -std::numeric_limits<float>::max());
    EXPECT_FALSE(find_non_finite(values));
    for (const float bad : {kNan, -kNan, kInf, -kInf}) {
      for (const size_t at : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> one = values;
        one[at] = bad;
        const NonFinite found = find_non_finite(one);
        EXPECT_EQ(found.count, 1);
        EXPECT_EQ(found.first, static_cast<int64_t>(at));
        one[n - 1] = kInf;
        EXPECT_EQ(find_non_finite(one).count, at == n - 1 ? 1 : 2);
        EXPECT_EQ(find_non_finite(one).first, static_cast<int64_t>(at));
      }
    }
  }
  EXPECT_EQ(non_finite_name(-kNan), "NaN");
  EXPECT_EQ(non_finite_name(-kInf), "-inf");
}

std::shared_ptr<const Model> load(const std::string& path, Compute compute) {
  return Model::load({.path = path, .device = "cpu", .compute = compute, .n_threads = 1});
}

// One weight of each tensor in turn. Bad rope_freqs are refused when the model is loaded, or give
// angles that are NaN; for all other tensors the error may appear anywhere.
TEST(PoisonedModel, OneWeightOfAnyTensorIsAnError) {
  TempDir folder;
  const std::string from = model_path("tiny-options"), to = folder / "poisoned.gguf";
  const std::vector<int32_t> prompt = generated_ids(90, 256, 5);
  int n = 0;
  const GgufFile file = GgufFile::open(from);
  for (const GgufTensor& t : file.tensors()) {
    const bool embedding = t.name == "token_embd.weight";
    for (const float value : {kNan, kInf}) {
      SCOPED_TRACE(t.name + " " + non_finite_name(value));
      const int64_t row = embedding ? prompt[40] * t.tensor.shape[1] : t.tensor.numel() / 2;
      write_poisoned_model(from, to, {.tensor = t.name, .value = value, .first = row});
      try {
        const bool in_bf16 = n % 2 != 0 && runs(Compute::bf16);
        const auto model = load(to, in_bf16 ? Compute::bf16 : Compute::f32);
        Session session(model, {.kv = {.budget = 40, .window_size = 8}});
        session.prefill(prompt);
        ADD_FAILURE() << "no error";
      } catch (const Error& e) {
        EXPECT_TRUE(e.code() == ErrorCode::kRuntime || e.code() == ErrorCode::kBadModel);
        EXPECT_NE(std::string(e.what()).find("finite"), std::string::npos) << e.what();
      }
      ++n;
    }
  }
  EXPECT_GT(n, 40);
}

// token_embd's row of a token that is not in the prompt: only decoding that token fails.
TEST(PoisonedModel, AFailedDecodeStepIsTakenBack) {
  TempDir folder;
  const std::string path = folder / "poisoned.gguf";
  constexpr int32_t kBad = 200, kGood = 77;
  const int64_t n_embd = load_model("tiny-options")->info().n_embd;
  write_poisoned_model(
      model_path("tiny-options"), path,
      {.tensor = "token_embd.weight", .value = kNan, .first = kBad * n_embd, .count = n_embd});
  const auto model = load(path, Compute::f32);
  const std::vector<int32_t> prompt = generated_ids(60, kBad, 5);
  for (const int64_t limit : {0, 44}) {
    const SessionOptions options = {.kv = {.budget = 40, .window_size = 8},
                                    .kv_decode_limit = limit};
    Session session(model, options), other(model, options), twin(model, options);
    for (Session* s : {&session, &other, &twin}) s->prefill(prompt);
    for (int step = 0; step < 12; ++step) {
      const std::vector<float> before(session.logits().begin(), session.logits().end());
      const std::vector<int32_t> positions = session.cached_positions(1, 0);
      const SessionStats stats = session.stats();
      expect_error(ErrorCode::kRuntime, {"row 1", "NaN", "decode step", "--check-tensors"}, [&] {
        Session* batch[] = {&other, &session};
        decode_batch(batch, std::vector<int32_t>{kGood, kBad});
      });
      EXPECT_TRUE(std::equal(before.begin(), before.end(), session.logits().begin()));
      EXPECT_EQ(session.n_past(), 60 + step);
      EXPECT_EQ(other.n_past(), 60 + step);
      EXPECT_EQ(session.stats().n_decoded, stats.n_decoded);
      if (limit == 0) {
        EXPECT_EQ(session.cached_positions(1, 0), positions);
      }
      Session* batch[] = {&other, &session};
      decode_batch(batch, std::vector<int32_t>{kGood + step, kGood + step});
      twin.decode(kGood + step);
      ASSERT_TRUE(std::equal(twin.logits().begin(), twin.logits().end(), other.logits().begin()));
      EXPECT_EQ(session.cached_positions(1, 0).back(), 60 + step);
    }
  }
}

TEST(PoisonedModel, PrefillLeavesTheSessionAsItWas) {
  TempDir folder;
  const std::string path = folder / "poisoned.gguf";
  const int64_t n_embd = load_model("tiny-options")->info().n_embd;
  write_poisoned_model(
      model_path("tiny-options"), path,
      {.tensor = "token_embd.weight", .value = kInf, .first = 200 * n_embd, .count = 1});
  const auto model = load(path, Compute::f32);
  Session session(model, {.kv = {.budget = 40, .window_size = 8}});
  const std::vector<int32_t> prompt = generated_ids(60, 200, 5);
  session.prefill(prompt);
  const std::vector<float> before(session.logits().begin(), session.logits().end());
  std::vector<int32_t> turn = generated_ids(20, 200, 6);
  turn[3] = 200;
  expect_error(ErrorCode::kRuntime, {"finite"}, [&] { session.prefill(turn); });
  EXPECT_EQ(session.n_past(), 60);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), session.logits().begin()));
  session.decode(7);
  EXPECT_EQ(session.n_past(), 61);
}

TEST(PoisonedModel, AProbeReportsNoNan) {
  TempDir folder;
  const std::string path = folder / "poisoned.gguf";
  write_poisoned_model(model_path("tiny-options"), path,
                       {.tensor = "blk.1.attn_k.weight", .value = kNan, .first = 5});
  Session session(load(path, Compute::f32), {.kv = {.name = "full"}});
  AttentionProbe probe;
  probe.ranges = {{50, 60}};
  int n_reports = 0;
  probe.report = [&](const AttentionProbe::Report&) { ++n_reports; };
  const std::vector<int32_t> prompt = generated_ids(60, 200, 5);
  expect_error(ErrorCode::kRuntime, {"layer 1", "query head", "key", "NaN"},
               [&] { session.prefill(prompt, {.probe = &probe}); });
  EXPECT_EQ(n_reports, 1) << "layer 0 has attention";
}

// The scores that a policy ranks, without a model.
TEST(PoisonedScores, EveryPolicyRefusesThem) {
  constexpr int64_t kTokens = 80, kHeads = 4, kHeadsKv = 2, kDim = 16, kWindow = 8;
  for (const std::string& name : policy_names()) {
    if (name == "full" || policy_info(name).observes) continue;  // need a model
    const bool reads_keys = name != "streaming-llm" && name != "random";
    for (const float bad : {kNan, kInf}) {
      SCOPED_TRACE(name + " " + non_finite_name(bad));
      std::vector<float> q(kWindow * kHeads * kDim, 0.5f), k(kTokens * kHeadsKv * kDim, 0.25f),
          v = k;
      // Token 11, head 1. Infinite keys of one sign have a score like any other in float.
      k[(11 * kHeadsKv + 1) * kDim + 3] = bad;
      LayerView layer;
      layer.n_tokens = kTokens, layer.n_window = kWindow;
      layer.n_head = kHeads, layer.n_head_kv = kHeadsKv, layer.head_dim = kDim;
      layer.q = {q.data(), DType::f32, kDim, kHeads * kDim};
      layer.k = {k.data(), DType::f32, kDim, kHeadsKv * kDim};
      layer.v = {v.data(), DType::f32, kDim, kHeadsKv * kDim};
      PolicyConfig config{.name = name, .budget = 30, .window_size = kWindow};
      if (name == "lagkv") config.params["lag_size"] = 16;  // no row of one run alone is scored
      Compressor compressor(config);
      if (reads_keys) {
        expect_error(
            ErrorCode::kRuntime,
            {"layer 0", name == "tova" ? "KV head 0" : "KV head 1", "not finite", "of row"},
            [&] { compressor.select(layer); });
      } else {
        EXPECT_EQ(compressor.select(layer)[1].size(), 30u);
      }
    }
  }
}

}  // namespace finite_check_tests
}  // namespace snapkv::test
