// SPDX-License-Identifier: MIT
// SessionOptions::kv_decode_limit: the cache stays bounded in long generations, and the kept rows
// are those that the policy's rule keeps when computed by plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cache/kv_layer.h"
#include "format/gguf.h"
#include "model/architecture.h"
#include "tests/engine/session_support.h"
#include "tests/policy/selection_oracle.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace decode_limit_tests {

constexpr int kLayers = 4, kHeadsKv = 2, kHeads = 4, kHeadDim = 32;
constexpr StateShape kShape = {.n_head = kHeadsKv, .head_dim_k = kHeadDim, .head_dim_v = kHeadDim};

SessionOptions limited(int64_t budget, int window, int64_t limit) {
  SessionOptions options;
  options.kv.budget = budget;
  options.kv.window_size = window;
  options.kv_type = DType::f32;
  options.kv_decode_limit = limit;
  return options;
}

/// The mean number of rows per head of a layer.
double mean_rows(const Session& session, int il) {
  size_t n = 0;
  for (int h = 0; h < kHeadsKv; ++h) n += session.cached_positions(il, h).size();
  return static_cast<double>(n) / kHeadsKv;
}

/// Expects the positions of every head to be ascending, valid, and to end with the last `n_last`
/// tokens.
void expect_good_positions(const Session& session, int32_t n_last) {
  const int32_t n_past = static_cast<int32_t>(session.n_past());
  for (int il = 0; il < kLayers; ++il) {
    for (int h = 0; h < kHeadsKv; ++h) {
      const std::vector<int32_t> pos = session.cached_positions(il, h);
      ASSERT_GE(std::ssize(pos), n_last);
      EXPECT_EQ(std::adjacent_find(pos.begin(), pos.end(), std::greater_equal<>()), pos.end());
      EXPECT_GE(pos.front(), 0);
      for (int32_t i = 1; i <= n_last; ++i) {
        EXPECT_EQ(pos[pos.size() - static_cast<size_t>(i)], n_past - i);
      }
    }
  }
}

TEST(DecodeLimitTest, LongGenerationsStayBounded) {
  for (const DType type : {DType::f32, DType::q8_0}) {
    SCOPED_TRACE(name(type));
    SessionOptions options = limited(40, 16, 64);
    options.kv_type = type;
    options.decode_reserve = 10;
    Session session(load_model("tiny-f32"), options);
    session.prefill(generated_ids(100, kVocab, 1));
    const size_t row = kLayers * kHeadsKv * KvLayer::row_bytes(type, kShape);
    for (int32_t id : generated_ids(200, kVocab, 2)) {
      session.decode(id);
      for (int il = 0; il < kLayers; ++il) ASSERT_LE(mean_rows(session, il), 64);
      ASSERT_LE(session.stats().kv_bytes, 64 * row);  // no memory is reserved for more
    }
    expect_good_positions(session, 16);
    // 40 rows after the prompt; the limit is reached after 24 more, and then every 24 steps.
    EXPECT_EQ(session.stats().n_recompressed, (200 - 1) / 24);
    EXPECT_GT(session.stats().recompress_seconds, 0);
    EXPECT_LT(session.stats().recompress_seconds, session.stats().decode_seconds);
    EXPECT_EQ(session.stats().kv_bytes_full, 300 * row);
  }
}

TEST(DecodeLimitTest, MemoryFallsAndQueriesAreCounted) {
  SessionOptions options = limited(40, 16, 140);
  options.decode_reserve = 8;
  Session session(load_model("tiny-f32"), options);
  session.prefill(generated_ids(100, kVocab, 1));
  for (int32_t id : generated_ids(100, kVocab, 2)) session.decode(id);
  const SessionStats before = session.stats();
  EXPECT_EQ(before.n_recompressed, 0);
  session.decode(5);
  const SessionStats after = session.stats();
  const size_t row = kHeadsKv * KvLayer::row_bytes(DType::f32, kShape);  // of one layer
  EXPECT_EQ(after.n_recompressed, 1);
  EXPECT_EQ(before.kv_bytes_used, 140 * kLayers * row);
  EXPECT_EQ(after.kv_bytes_used, 41 * kLayers * row);
  EXPECT_EQ(after.kv_bytes, 48 * kLayers * row);
  EXPECT_LE(after.kv_bytes_peak, (140 * kLayers + 140) * row);  // one layer grows or shrinks
  EXPECT_EQ(after.query_bytes, size_t{kLayers * 16 * kHeads * kHeadDim} * sizeof(float));
  const MemoryPlan plan = plan_memory(load_model("tiny-f32")->info(), options, 100, DType::f32);
  EXPECT_EQ(plan.queries, after.query_bytes);
  options.kv_decode_limit = 0;
  const MemoryPlan without = plan_memory(load_model("tiny-f32")->info(), options, 100, DType::f32);
  EXPECT_EQ(without.queries, 0u);
  EXPECT_EQ(plan.total(), without.total() + plan.queries);
}

TEST(DecodeLimitTest, BelowTheLimitNothingChanges) {
  for (const DType type : {DType::f32, DType::q8_0}) {
    SessionOptions options = limited(40, 16, 80);
    options.kv_type = type;
    Session with(load_model("tiny-f32"), options);
    options.kv_decode_limit = 0;
    Session without(load_model("tiny-f32"), options);
    for (Session* s : {&with, &without}) s->prefill(generated_ids(100, kVocab, 3));
    EXPECT_EQ(without.stats().query_bytes, 0u);
    for (int32_t id : generated_ids(40, kVocab, 4)) {
      for (Session* s : {&with, &without}) s->decode(id);
      ASSERT_EQ(copy(with.logits()), copy(without.logits()));
    }
    EXPECT_EQ(with.stats().n_recompressed, 0);
    for (Session* s : {&with, &without}) s->decode(7);
    EXPECT_EQ(with.stats().n_recompressed, 1);
    EXPECT_NE(copy(with.logits()), copy(without.logits()));
  }
}

// ---------------------------------------------------------------- the rule

/// The queries and keys of every layer if each token attends to all tokens before it, computed on
/// the reference device without a session.
class Trace final : public AttentionStep {
 public:
  struct Step {
    std::vector<float> q, k;  // [n, n_head, head_dim], [n_head_kv, n, head_dim]
  };
  std::vector<Step> layers;

  explicit Trace(const std::vector<int32_t>& ids)
      : file_(GgufFile::open(model_path("tiny-f32"))),
        backend_(Backend::make({.device = "reference"})) {
    const auto architecture = Architecture::make(file_);
    const ModelConfig& c = architecture->config();
    const int64_t n = std::ssize(ids);
    pos_.resize(ids.size());
    std::iota(pos_.begin(), pos_.end(), 0);
    const Buffer storage =
        backend_->allocate(static_cast<size_t>(n * c.n_embd) * sizeof(float), "hidden states");
    LinearRunner linear(*backend_);
    ActivationBuffer buffers;
    buffers.ensure(*backend_, architecture->activations(), n, DType::f32);
    LayerPass pass;
    pass.backend = backend_.get();
    pass.x = storage.view(DType::f32, {n, c.n_embd});
    pass.pos = pos_;
    pass.n_q = pass.n_out = n;
    pass.attention = this;
    pass.linear = &linear;
    pass.buffers = &buffers;
    architecture->embed(ids, pass);
    scale_ = architecture->layer_spec(0).scale;
    for (int il = 0; il < c.n_layer; ++il) architecture->layer(il, pass);
  }

  void attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out) override {
    const int32_t n = static_cast<int32_t>(q.shape[0]);
    KvMeter meter;
    KvLayer rows(*backend_, meter, kShape, DType::f32, std::vector<int32_t>(kHeadsKv, n));
    rows.append(*backend_, k, v, pos_);
    const std::vector<int32_t> n_past(kHeadsKv, 0);
    const auto [k_view, v_view] = rows.views();
    ops::attention_prefill(*backend_, {q, k_view, v_view, n_past, scale_, out});
    const float* q_data = q.at<float>(0);
    const float* k_data = k_view.at<float>(0);
    layers.push_back({{q_data, q_data + q.numel()}, {k_data, k_data + k_view.numel()}});
  }

 private:
  const GgufFile file_;
  const std::unique_ptr<Backend> backend_;
  std::vector<int32_t> pos_;
  float scale_ = 0;
};

/// The text's first n tokens as a layer for the oracle; the last n_window of them are its window.
Layer oracle_layer(const Trace::Step& step, int64_t n_window, float scale) {
  Layer l;
  l.n_head = kHeads, l.n_head_kv = kHeadsKv, l.head_dim = kHeadDim;
  l.n_window = n_window;
  l.n_tokens = std::ssize(step.k) / kHeadsKv / kHeadDim;
  l.scale = scale;
  l.k = step.k;
  l.q.assign(step.q.end() - n_window * kHeads * kHeadDim, step.q.end());
  return l;
}

TEST(DecodeLimitTest, KeepsTheRowsThatTheRuleChooses) {
  const int64_t limit = 96, budget = 64, window = 16;
  const auto ids = generated_ids(limit, kVocab, 5);
  const Trace trace(ids);
  // The window's queries may be all decoded, some of them the prompt's, or of a further turn that
  // is shorter than the window.
  for (const int64_t n_prompt : {30, 64}) {
    SCOPED_TRACE(n_prompt);
    Session session(load_model("tiny-f32"), limited(budget, window, limit));
    session.prefill(std::span(ids).first(static_cast<size_t>(n_prompt)));
    for (int64_t i = n_prompt; i < limit; ++i) session.decode(ids[static_cast<size_t>(i)]);
    EXPECT_EQ(session.stats().n_recompressed, 0);
    session.decode(9);
    ASSERT_EQ(session.stats().n_recompressed, 1);
    for (int il = 0; il < kLayers; ++il) {
      const Layer layer = oracle_layer(trace.layers[static_cast<size_t>(il)], window,
                                       1.0f / std::sqrt(static_cast<float>(kHeadDim)));
      for (int h = 0; h < kHeadsKv; ++h) {
        std::vector<int32_t> kept = session.cached_positions(il, h);
        EXPECT_EQ(kept.back(), limit);  // the row of this step
        kept.pop_back();
        const Scores scores = oracle_scores(layer, session.options().kv, h);
        EXPECT_TRUE(is_selection(kept, scores, window, budget - window, 1e-3)) << il << " " << h;
      }
    }
  }
}

TEST(DecodeLimitTest, AShortTurnsWindowBeginsWithTheTurn) {
  Session session(load_model("tiny-f32"), limited(40, 16, 48));
  session.prefill(generated_ids(90, kVocab, 6));
  session.prefill(generated_ids(3, kVocab, 7));  // the rows before are not those of the last tokens
  for (int32_t id : generated_ids(9, kVocab, 8)) session.decode(id);
  EXPECT_EQ(session.stats().n_recompressed, 1);
  expect_good_positions(session, 12);
  // 40 + 3 + 5 rows reach the limit; they are compressed to 40, and 4 more follow.
  for (int il = 0; il < kLayers; ++il) EXPECT_EQ(mean_rows(session, il), 44);
}

TEST(DecodeLimitTest, ATurnThatFitsBelowTheLimitIsAppended) {
  Session session(load_model("tiny-f32"), limited(40, 16, 64));
  session.prefill(generated_ids(90, kVocab, 6));
  session.prefill(generated_ids(20, kVocab, 7));
  for (int il = 0; il < kLayers; ++il) EXPECT_EQ(mean_rows(session, il), 60);
  expect_good_positions(session, 20);
  session.prefill(generated_ids(5, kVocab, 8));  // 65 rows: one too many
  for (int il = 0; il < kLayers; ++il) EXPECT_EQ(mean_rows(session, il), 40);
  expect_good_positions(session, 5);
}

TEST(DecodeLimitTest, ATurnThatWasKeptWholeIsCompressedWithTheNextToken) {
  Session session(load_model("tiny-f32"), limited(40, 16, 48));
  session.prefill(generated_ids(90, kVocab, 17));
  PrefillOptions whole;
  whole.compress = false;
  session.prefill(generated_ids(20, kVocab, 18), whole);
  EXPECT_EQ(mean_rows(session, 0), 60);
  session.decode(3);
  EXPECT_EQ(session.stats().n_recompressed, 1);
  for (int il = 0; il < kLayers; ++il) EXPECT_EQ(mean_rows(session, il), 41);
  expect_good_positions(session, 17);
}

// ---------------------------------------------------------------- policies and batches

TEST(DecodeLimitTest, EveryPolicyStaysBounded) {
  for (const std::string& policy : policy_names()) {
    if (policy == "full" || policy_info(policy).observes) continue;
    for (const DType type : {DType::f16, DType::q8_0}) {
      SCOPED_TRACE(policy + " " + std::string(name(type)));
      SessionOptions options = limited(40, 8, 56);
      options.kv.name = policy;
      if (policy == "ada-snapkv") {
        options.kv.params = {{"critical", type == DType::f16}, {"head_floor", 0}};
      }
      options.kv_type = type;
      Session session(load_model("tiny-f32"), options);
      session.prefill(generated_ids(100, kVocab, 9));
      double most = 0;
      for (int32_t id : generated_ids(60, kVocab, 10)) {
        session.decode(id);
        double rows = 0;
        for (int il = 0; il < kLayers; ++il) rows += mean_rows(session, il) / kLayers;
        most = std::max(most, rows);
      }
      EXPECT_LE(most, 56);
      EXPECT_GT(most, 53);  // the limit is used; layers that reach it at another step matter little
      EXPECT_GE(session.stats().n_recompressed, 3);
      expect_good_positions(session, 8);
    }
  }
}

TEST(DecodeLimitTest, SessionsOfABatchHaveLimitsOfTheirOwn) {
  const auto model = load_model("tiny-f32");
  std::vector<Session> alone, batched;
  for (const int64_t limit : {0, 44, 60}) {
    alone.emplace_back(model, limited(40, 16, limit));
    batched.emplace_back(model, limited(40, 16, limit));
  }
  std::vector<Session*> batch;
  for (Session& s : batched) batch.push_back(&s);
  prefill_many(batch, generated_ids(90, kVocab, 11));
  for (Session& s : alone) s.prefill(generated_ids(90, kVocab, 11));
  for (int32_t id : generated_ids(30, kVocab, 12)) {
    decode_batch(batch, std::vector<int32_t>{id, id + 1, id + 2});
    for (size_t i = 0; i < 3; ++i) alone[i].decode(id + static_cast<int32_t>(i));
  }
  const std::vector<int64_t> expected = {0, 29 / 4, 29 / 20};
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(batched[i].stats().n_recompressed, expected[i]);
    EXPECT_EQ(alone[i].stats().n_recompressed, expected[i]);
    EXPECT_EQ(batched[i].cached_positions(3, 1), alone[i].cached_positions(3, 1));
    const auto a = alone[i].logits(), b = batched[i].logits();
    for (size_t t = 0; t < a.size(); ++t) ASSERT_NEAR(a[t], b[t], 1e-3);
  }
}

TEST(DecodeLimitTest, ACancelledTurnLeavesTheWindowAsItWas) {
  Session session(load_model("tiny-f32"), limited(40, 16, 50));
  Session untouched(load_model("tiny-f32"), limited(40, 16, 50));
  for (Session* s : {&session, &untouched}) {
    s->prefill(generated_ids(80, kVocab, 13));
    s->decode(6);
  }
  PrefillOptions cancelling;
  cancelling.progress = [](const Progress& p) { return p.fraction < 0.6; };
  EXPECT_THROW(session.prefill(generated_ids(60, kVocab, 14), cancelling), Error);
  for (int32_t id : generated_ids(12, kVocab, 15)) {
    for (Session* s : {&session, &untouched}) s->decode(id);
  }
  EXPECT_EQ(session.stats().n_recompressed, 1);
  EXPECT_EQ(session.cached_positions(2, 0), untouched.cached_positions(2, 0));
  EXPECT_EQ(copy(session.logits()), copy(untouched.logits()));
}

TEST(DecodeLimitTest, SaysWhatCantWork) {
  const auto model = load_model("tiny-f32");
  const auto make = [&](const SessionOptions& options) { return Session(model, options); };
  expect_error(ErrorCode::kUsage, {"kv_decode_limit", "64", "budget"},
               [&] { make(limited(64, 16, 64)); });
  expect_error(ErrorCode::kUsage, {"kv_decode_limit", "-1"}, [&] { make(limited(64, 16, -1)); });
  for (const char* policy : {"h2o", "expected-attention", "kvzip"}) {
    SessionOptions options = limited(64, 16, 100);
    options.kv.name = policy;
    expect_error(ErrorCode::kUsage, {"kv_decode_limit", policy, "queries"}, [&] { make(options); });
  }
  SessionOptions options = limited(64, 16, 100);
  options.kv.ratio = 0.5;
  expect_error(ErrorCode::kUsage, {"kv_decode_limit", "ratio", "0.5"}, [&] { make(options); });
  options.kv.name = "full";  // keeps everything, whatever the other options are
  Session full = make(options);
  full.prefill(generated_ids(120, kVocab, 16));
  full.decode(3);
  EXPECT_EQ(full.cached_positions(0, 0).size(), 121u);
  EXPECT_EQ(full.stats().query_bytes, 0u);
}

// ---------------------------------------------------------------- a model that answers

/// The text is decoded token by token. Compression at its very end, with the question as the
/// window, must leave the answer in the cache.
TEST(DecodeLimitTest, TheTrainedModelAnswersAfterIt) {
  const auto model = load_model("needle");
  std::string text = "\nThe secret number of Rome is 48213.\n";
  for (int i = 0; i < 16; ++i) text += "The baker lost a lantern near the market.\n";
  text += "\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
  const std::vector<int32_t> ids = model->tokenize(text);
  const int64_t n = std::ssize(ids);
  SessionOptions options = limited(64, 16, n);
  options.kv.params["kernel_size"] = 15;
  options.kv_type = DType::f16;
  ASSERT_GT(n, 150);
  Session session(model, options);
  session.prefill(std::span(ids).first(40));
  for (int64_t i = 40; i < n; ++i) session.decode(ids[static_cast<size_t>(i)]);
  EXPECT_EQ(session.stats().n_recompressed, 0);
  Sampler sampler({.temperature = 0});
  std::string answer;
  for (int i = 0; i < 7; ++i) {
    const int32_t id = sampler.sample(session.logits());
    answer += model->piece(id);
    session.decode(id);
  }
  EXPECT_EQ(answer, " 48213.");
  EXPECT_EQ(session.stats().n_recompressed, 1);
  EXPECT_LE(session.cached_positions(0, 0).size(), 64u + 7u);
}

}  // namespace decode_limit_tests
}  // namespace snapkv::test
