// SPDX-License-Identifier: MIT
// Models some of whose layers read the rows of earlier ones: whose queries choose what is kept,
// turns, files, prefixes, batches. family_test.cpp has what every family must do.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "snapkv/prefill.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace shared_rows_tests {

constexpr int64_t kTokens = 150;
constexpr int kSource = 2;  // the layer without a window whose rows others read

std::shared_ptr<const Model> model() { return load_model("gemma4-e"); }

std::vector<int32_t> text(int64_t n, uint32_t seed) { return generated_ids(n, kFamilyVocab, seed); }

/// Layers that see the rows of kSource.
std::vector<int> readers() {
  std::vector<int> all = {kSource};
  for (int il = 0; il < model()->info().n_layer; ++il) {
    if (model()->info().layers[il].rows_of == kSource) all.push_back(il);
  }
  return all;
}

/// What the window's queries of each layer give each position, [n_head_kv][n_tokens], added up over
/// the query heads of a group.
std::map<int, std::vector<std::vector<double>>> votes_of(const std::vector<int32_t>& tokens,
                                                         int64_t window) {
  std::map<int, std::vector<std::vector<double>>> votes;
  const int64_t n = std::ssize(tokens);
  AttentionProbe probe;
  probe.ranges = {{n - window, n}};
  probe.report = [&](const AttentionProbe::Report& r) {
    const int64_t n_head_kv = model()->info().layers[r.il].n_head_kv;
    std::vector<std::vector<double>>& groups = votes[r.il];
    groups.assign(n_head_kv, std::vector<double>(n));
    for (int64_t h = 0; h < r.n_head; ++h) {
      for (int64_t j = 0; j < n; ++j) {
        groups[h / (r.n_head / n_head_kv)][j] += r.sums[h * r.n_keys + j];
      }
    }
  };
  Session session(model(), full_options());
  session.prefill(tokens, {.probe = &probe});
  return votes;
}

/// The rows before the window that a policy keeps of the most voted for, ascending.
std::vector<int32_t> highest(const std::vector<double>& votes, int64_t n_prefix, int64_t n) {
  std::vector<int32_t> order(n_prefix);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return votes[a] > votes[b]; });
  order.resize(n);
  std::sort(order.begin(), order.end());
  return order;
}

TEST(SharedRows, AllQueriesThatReadThemChooseThem) {
  constexpr int64_t kBudget = 40, kWindow = 8;
  const std::vector<int32_t> tokens = text(kTokens, 11);
  auto votes = votes_of(tokens, kWindow);
  ASSERT_GE(readers().size(), 3u);
  SessionOptions options = snapkv_options(kBudget, kWindow);
  set_param(options.kv, "kernel_size", int64_t{1});
  for (const int64_t chunk : {512, 37}) {
    SCOPED_TRACE(chunk);
    options.chunk = chunk;
    Session session(model(), options);
    session.prefill(tokens);
    int n_other = 0;
    for (int g = 0; g < model()->info().layers[kSource].n_head_kv; ++g) {
      std::vector<double> sum(kTokens);
      for (const int il : readers()) {
        for (int64_t j = 0; j < kTokens; ++j) sum[j] += votes[il][g][j];
      }
      std::vector<int32_t> kept = session.cached_positions(kSource, g);
      ASSERT_EQ(std::ssize(kept), kBudget);
      kept.resize(kBudget - kWindow);
      EXPECT_EQ(kept, highest(sum, kTokens - kWindow, kBudget - kWindow)) << "head " << g;
      n_other += kept != highest(votes[kSource][g], kTokens - kWindow, kBudget - kWindow);
    }
    EXPECT_GT(n_other, 0) << "its own queries would choose the same: this tests nothing";
  }
}

// Until the limit nothing has been dropped, so the queries are those of one prompt.
TEST(SharedRows, DecodingChoosesByAllOfThemToo) {
  constexpr int64_t kBudget = 100, kLimit = 110, kWindow = 8;
  SessionOptions options = snapkv_options(kBudget, kWindow);
  options.kv_decode_limit = kLimit;
  set_param(options.kv, "kernel_size", int64_t{1});
  const std::vector<int32_t> tokens = text(kLimit + 1, 5);
  Session session(model(), options);
  session.prefill(std::span(tokens).first(90));
  for (int64_t i = 90; i < kLimit; ++i) session.decode(tokens[i]);
  EXPECT_EQ(session.stats().n_recompressed, 0);
  session.decode(tokens[kLimit]);
  ASSERT_EQ(session.stats().n_recompressed, 1);
  auto votes = votes_of({tokens.begin(), tokens.begin() + kLimit}, kWindow);
  for (int g = 0; g < 2; ++g) {
    std::vector<double> sum(kLimit);
    for (const int il : readers()) {
      for (int64_t j = 0; j < kLimit; ++j) sum[j] += votes[il][g][j];
    }
    std::vector<int32_t> kept = session.cached_positions(kSource, g);
    ASSERT_EQ(std::ssize(kept), kBudget + 1);
    EXPECT_EQ(kept, session.cached_positions(readers().back(), g));
    kept.resize(kBudget - kWindow);
    EXPECT_EQ(kept, highest(sum, kLimit - kWindow, kBudget - kWindow)) << "head " << g;
  }
}

TEST(SharedRows, EveryPolicyAndCriticalChoose) {
  for (const std::string& policy : policy_names()) {
    if (policy == "full") continue;
    SCOPED_TRACE(policy);
    SessionOptions options = snapkv_options(60, 8);
    options.kv.name = policy;
    if (policy_info(policy).find("critical") != nullptr) set_param(options.kv, "critical", true);
    Session session(model(), options);
    session.prefill(text(kTokens, 3));
    int64_t n_rows = 0;
    for (int g = 0; g < 2; ++g) n_rows += std::ssize(session.cached_positions(kSource, g));
    EXPECT_EQ(n_rows, 120);
    session.decode(300);
    for (const float logit : session.logits()) ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST(SharedRows, AreCountedOnce) {
  const ModelInfo& info = model()->info();
  int64_t own = 0;
  for (const LayerInfo& layer : info.layers) {
    if (layer.rows_of < 0) own += layer.n_head_kv * (2 * layer.head_dim * 4 + 4);
  }
  EXPECT_EQ(kv_bytes_per_token(info, DType::f32), static_cast<size_t>(own));
  EXPECT_EQ(kv_layer_bytes(info, DType::f32, readers().back(), 100), 0u);
  Session session(model(), full_options());
  session.prefill(text(10, 1));
  EXPECT_EQ(session.stats().kv_bytes_used, static_cast<size_t>(own) * 10);
}

TEST(SharedRows, ASessionComesBackFromAFile) {
  const TempDir dir;
  expect_sessions_come_back(model(), kTokens, dir / "session.kv");
}

TEST(SharedRows, APrefixServesPromptsAndComesBackFromAFile) {
  const TempDir dir;
  const std::vector<int32_t> tokens = text(kTokens, 1);
  Session first(model(), full_options());
  PrefillPrompt prompt;
  prompt.sessions = {&first};
  prompt.tokens = {tokens.begin(), tokens.begin() + 100};
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  const auto prefix = prefill.take_prefix();
  prefix->save(dir / "prefix.kv", DType::f32);
  const auto loaded = KvPrefix::load(model(), dir / "prefix.kv");
  for (const SessionOptions& options : {full_options(), snapkv_options(40, 8)}) {
    Session alone(model(), options);
    alone.prefill(tokens);
    for (const auto& rows : {prefix, loaded}) {
      Session session(model(), options);
      session.prefill(tokens, {.prefix = rows, .n_from_prefix = 90});
      EXPECT_LT(max_difference(session.logits(), alone.logits()), 3e-4);
      EXPECT_EQ(session.cached_positions(kSource, 1), alone.cached_positions(kSource, 1));
    }
  }
}

TEST(SharedRows, SequencesAreComputedTogether) {
  const std::vector<int64_t> lengths = {1, 40, 2, 33};
  std::vector<std::unique_ptr<Session>> together, alone;
  std::vector<PrefillPrompt> prompts;
  std::vector<Session*> batch;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<int32_t> tokens = text(lengths[i], 10 + static_cast<uint32_t>(i));
    for (auto* sessions : {&together, &alone}) {
      sessions->push_back(std::make_unique<Session>(model(), full_options()));
    }
    alone.back()->prefill(tokens);
    batch.push_back(together.back().get());
    prompts.emplace_back().sessions = {batch.back()};
    prompts.back().tokens = tokens;
  }
  Prefill prefill(std::move(prompts));
  while (!prefill.step()) {
  }
  for (int step = 0; step < 10; ++step) {
    for (size_t i = 0; i < batch.size(); ++i) {
      EXPECT_LT(max_difference(batch[i]->logits(), alone[i]->logits()), 3e-4) << i;
    }
    const std::vector<int32_t> ids = text(std::ssize(batch), 50 + step);
    decode_batch(batch, ids);
    for (size_t i = 0; i < batch.size(); ++i) alone[i]->decode(ids[i]);
  }
}

// One prompt for several policies, with windows of different lengths.
TEST(SharedRows, SessionsThatShareAPromptKeepWhatTheyKeepAlone) {
  const SessionOptions all[] = {snapkv_options(40, 8), snapkv_options(60, 16), full_options()};
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<Session*> batch;
  for (const SessionOptions& options : all) {
    sessions.push_back(std::make_unique<Session>(model(), options));
    batch.push_back(sessions.back().get());
  }
  prefill_many(batch, text(kTokens, 1));
  for (size_t i = 0; i < batch.size(); ++i) {
    Session alone(model(), all[i]);
    alone.prefill(text(kTokens, 1));
    EXPECT_EQ(batch[i]->cached_positions(kSource, 0), alone.cached_positions(kSource, 0));
    batch[i]->decode(300);
    alone.decode(300);
    EXPECT_EQ(copy(batch[i]->logits()), copy(alone.logits()));
  }
}

TEST(SharedRows, ACancelledTurnLeavesTheSessionAsItWas) {
  for (const SessionOptions& options : {full_options(), snapkv_options(40, 8)}) {
    Session session(model(), options), other(model(), options);
    for (Session* s : {&session, &other}) {
      s->prefill(text(50, 1));
      s->decode(7);
    }
    for (const int stop_at : {1, 4, 8}) {
      int n = 0;
      expect_error(ErrorCode::kCancelled, {}, [&] {
        session.prefill(text(20, 2), {.progress = [&](const Progress&) { return ++n < stop_at; }});
      });
    }
    for (Session* s : {&session, &other}) s->prefill(text(20, 3));
    EXPECT_EQ(copy(session.logits()), copy(other.logits()));
  }
}

TEST(SharedRows, TheInfoSaysWhoseRowsALayerReads) {
  const std::vector<LayerInfo>& layers = model()->info().layers;
  for (int il = 0; il < std::ssize(layers); ++il) {
    const bool windowed = layers[il].window > 0;
    EXPECT_EQ(layers[il].rows_of, il < 3 ? -1 : windowed ? 1 : 2) << il;
    EXPECT_EQ(layers[il].head_dim, windowed ? 16 : 32) << il;
    EXPECT_EQ(layers[il].compressed, il == kSource) << il;
  }
  EXPECT_EQ(model()->info().n_compressed(), 1);
}

}  // namespace shared_rows_tests
}  // namespace snapkv::test
