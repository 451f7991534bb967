// SPDX-License-Identifier: MIT
// Abilities that every model family must have, with any kind of attention: prompts, turns,
// policies, limits and plans. llama_oracle_test.cpp compares the models' results with llama.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "model/model_spec.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/processor.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace family_tests {

constexpr int64_t kPrompt = 100;  // tokens; longer than every window

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const FamilyModel& m : family_models()) all.push_back(m.name);
  return all;
}

SessionOptions options_of(const std::string& policy, int64_t budget = 40) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = budget;
  options.kv.window_size = 8;
  options.kv_type = DType::f32;
  options.decode_reserve = 16;
  return options;
}

class FamilyTest : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Model> model() const { return load_model(GetParam()); }
  const ModelInfo& info() const { return model()->info(); }
  std::vector<int32_t> prompt(int64_t n = kPrompt) const {
    return generated_ids(n, kFamilyVocab, 11);
  }
  int64_t n_past(const Session& s) const { return s.n_past(); }
  /// The number of rows of every head in layer il.
  static std::vector<size_t> rows(const Session& s, int il) {
    std::vector<size_t> n;
    for (int h = 0; h < s.model().info().layers[il].n_head_kv; ++h) {
      n.push_back(s.cached_positions(il, h).size());
    }
    return n;
  }
  /// Expects layers with a window, or with chunks, to have exactly the last positions.
  void expect_windows(const Session& s) const {
    for (int il = 0; il < info().n_layer; ++il) {
      const LayerInfo& layer = info().layers[il];
      const bool in_chunks = layer.attention == AttentionKind::chunked;
      if (layer.attention != AttentionKind::sliding_window && !in_chunks) continue;
      const int64_t n = info().full_rows(il, s.n_past());
      for (int h = 0; h < layer.n_head_kv; ++h) {
        const std::vector<int32_t> pos = s.cached_positions(il, h);
        ASSERT_EQ(std::ssize(pos), n) << "layer " << il;
        for (int64_t i = 0; i < n; ++i) EXPECT_EQ(pos[i], s.n_past() - n + i);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Models, FamilyTest, testing::ValuesIn(names()), [](const auto& p) {
  std::string name = p.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST_P(FamilyTest, EveryDeviceAndChunkComputesTheSame) {
  Session reference(load_model(GetParam(), Compute::f32, 2, "reference"), options_of("full"));
  reference.prefill(prompt(60));
  for (const int64_t chunk : {1, 7, 59, 512}) {
    SCOPED_TRACE(chunk);
    SessionOptions options = options_of("full");
    options.chunk = chunk;
    Session session(model(), options);
    session.prefill(prompt(60));
    EXPECT_LT(max_difference(session.logits(), reference.logits()), 3e-4);
    session.decode(300);
    Session next(load_model(GetParam(), Compute::f32, 2, "reference"), options_of("full"));
    std::vector<int32_t> longer = prompt(60);
    longer.push_back(300);
    next.prefill(longer);
    EXPECT_LT(max_difference(session.logits(), next.logits()), 3e-4);
  }
}

TEST_P(FamilyTest, PackedBf16StaysClose) {
  if (!runs(Compute::bf16)) GTEST_SKIP() << "this processor multiplies no bf16";
  Session exact(model(), options_of("full"));
  Session rounded(load_model(GetParam(), Compute::bf16), options_of("full"));
  // phimoe's router leaves out scores that are far enough below the largest one, and rounding
  // decides that for some token of most longer prompts. It also decides which tokens indexers
  // choose, of prompts with more tokens than that.
  const bool chooses = bool{info().spec->layers[0].latent.index};
  const int64_t n = GetParam() == "phimoe" ? 6 : chooses ? 20 : kPrompt;
  exact.prefill(prompt(n));
  rounded.prefill(prompt(n));
  double sum = 0, squares = 0;
  for (size_t i = 0; i < exact.logits().size(); ++i) {
    if (exact.logits()[i] == std::numeric_limits<float>::lowest()) continue;  // never written
    const double d = exact.logits()[i] - rounded.logits()[i];
    sum += d * d;
    squares += static_cast<double>(exact.logits()[i]) * exact.logits()[i];
  }
  EXPECT_LT(std::sqrt(sum / squares), 0.1);  // 8 bits of mantissa through a few layers
}

TEST_P(FamilyTest, ABudgetThatHoldsThePromptChangesNothing) {
  Session full(model(), options_of("full"));
  Session snapkv(model(), options_of("snapkv", kPrompt));
  for (Session* s : {&full, &snapkv}) {
    s->prefill(prompt());
    for (const int32_t id : generated_ids(10, kFamilyVocab, 3)) s->decode(id);
  }
  EXPECT_EQ(copy(full.logits()), copy(snapkv.logits()));
}

TEST_P(FamilyTest, KeepsTheBudgetOrTheWindow) {
  for (const std::string& policy : policy_names()) {
    SCOPED_TRACE(policy);
    const PolicyInfo& kind = policy_info(policy);
    Session session(model(), options_of(policy));
    session.prefill(prompt());
    const int64_t budget = policy == "full" ? kPrompt : 40;
    int64_t kept = 0, expected = 0;  // in all layers: they and their heads may share it unevenly
    for (int il = 0; il < info().n_layer; ++il) {
      if (!info().layers[il].compressed) continue;
      int64_t of_layer = 0;
      for (const size_t n : rows(session, il)) of_layer += static_cast<int64_t>(n);
      const int64_t n_head_kv = info().layers[il].n_head_kv;
      if (!kind.shares_layers) {
        EXPECT_EQ(of_layer % n_head_kv, 0);
      }
      kept += kind.shares_layers ? of_layer : of_layer / n_head_kv;
      expected += kind.shares_layers ? budget * n_head_kv : budget;
    }
    EXPECT_EQ(kept, expected);
    expect_windows(session);
    for (const int32_t id : generated_ids(30, kFamilyVocab, 3)) session.decode(id);
    expect_windows(session);
    for (const float logit : session.logits()) ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST_P(FamilyTest, TurnsReadWhatOnePromptReads) {
  const std::vector<int32_t> ids = prompt();
  Session once(model(), options_of("full")), turns(model(), options_of("full"));
  once.prefill(ids);
  turns.prefill(std::span(ids).first(47));
  for (int i = 47; i < 50; ++i) turns.decode(ids[i]);
  turns.prefill(std::span(ids).subspan(50));
  EXPECT_LT(max_difference(once.logits(), turns.logits()), 3e-4);
  for (int il = 0; il < info().n_layer; ++il) {
    for (int h = 0; h < info().layers[il].n_head_kv; ++h) {
      EXPECT_EQ(once.cached_positions(il, h), turns.cached_positions(il, h));
    }
  }
}

TEST_P(FamilyTest, ASecondTurnCompressesAgainOrKeepsItsQuestion) {
  for (const bool compress : {true, false}) {
    SCOPED_TRACE(compress);
    Session session(model(), options_of("snapkv"));
    session.prefill(prompt());
    session.prefill(generated_ids(20, kFamilyVocab, 5), {.compress = compress});
    for (int il = 0; il < info().n_layer; ++il) {
      if (!info().layers[il].compressed) continue;
      for (const size_t n : rows(session, il)) EXPECT_EQ(n, compress ? 40u : 60u);
    }
    expect_windows(session);
    session.decode(300);
    for (const float logit : session.logits()) ASSERT_TRUE(std::isfinite(logit));
  }
}

// kv_refresh: a later turn reads what a single prompt would have read, and keeps what it would have
// kept.
TEST_P(FamilyTest, ARefreshedTurnIsReadAsOnePromptWouldBe) {
  SessionOptions options = options_of("snapkv");
  options.kv_refresh = true;
  Session once(model(), options), turns(model(), options);
  const std::vector<int32_t> ids = prompt();
  once.prefill(ids);
  turns.prefill(std::span(ids).first(57));
  for (int i = 57; i < 60; ++i) turns.decode(ids[i]);  // these see the kept rows of the others
  turns.prefill(std::span(ids).subspan(60));
  EXPECT_EQ(turns.n_past(), kPrompt);
  for (int il = 0; il < info().n_layer; ++il) EXPECT_EQ(rows(once, il), rows(turns, il));
  expect_windows(turns);

  Session refreshed(model(), options);
  refreshed.prefill(std::span(ids).first(60));
  refreshed.prefill(std::span(ids).subspan(60));
  EXPECT_LT(max_difference(once.logits(), refreshed.logits()), 3e-4);
  for (int il = 0; il < info().n_layer; ++il) {
    if (info().layers[il].attention == AttentionKind::none) continue;
    EXPECT_EQ(once.cached_positions(il, 0), refreshed.cached_positions(il, 0)) << "layer " << il;
  }
}

TEST_P(FamilyTest, DecodeLimitBoundsEveryLayer) {
  SessionOptions options = options_of("snapkv");
  options.kv_decode_limit = 60;
  Session session(model(), options);
  session.prefill(prompt());
  for (const int32_t id : generated_ids(60, kFamilyVocab, 7)) {
    session.decode(id);
    for (int il = 0; il < info().n_layer; ++il) {
      for (const size_t n : rows(session, il)) ASSERT_LE(n, 60u);
    }
  }
  expect_windows(session);
  EXPECT_EQ(session.stats().n_recompressed > 0, info().n_compressed() > 0);
}

TEST_P(FamilyTest, ThePlanIsWhatASessionTakes) {
  const ModelInfo from_header = describe_model(model_path(GetParam())).info;
  for (const char* policy : {"full", "snapkv"}) {
    SCOPED_TRACE(policy);
    const SessionOptions options = options_of(policy);
    const MemoryPlan plan = plan_memory(from_header, options, kPrompt, DType::f32);
    EXPECT_EQ(plan.kv_kept, plan_memory(info(), options, kPrompt, DType::f32).kv_kept);
    Session session(model(), options);
    session.prefill(prompt());
    EXPECT_EQ(session.stats().kv_bytes, plan.kv_kept);
    EXPECT_EQ(session.stats().kv_bytes_full, plan.kv_full);
    EXPECT_LE(session.stats().kv_bytes_peak, plan.kv_peak());
  }
}

TEST_P(FamilyTest, KvMemoryIsABudget) {
  if (info().n_compressed() == 0) GTEST_SKIP() << "no layer is compressed";
  SessionOptions options = options_of("snapkv");
  options.kv_memory = plan_memory(info(), options, kPrompt, DType::f32).kv_kept;
  for (int il = 0; il < info().n_layer; ++il) {  // a longer text may fill the last chunk
    if (info().layers[il].attention != AttentionKind::chunked) continue;
    const int64_t most = info().layers[il].window, n = info().full_rows(il, kPrompt);
    options.kv_memory +=
        kv_layer_bytes(info(), DType::f32, il, most) - kv_layer_bytes(info(), DType::f32, il, n);
  }
  options.kv.budget = 1000;
  EXPECT_EQ(resolve_options(options, info()).kv.budget, 40);
  Session session(model(), options);
  session.prefill(prompt());
  EXPECT_LE(session.stats().kv_bytes, options.kv_memory);
}

// Every query distributes a probability of 1, none of it outside its window, and a part of it to a
// sink if there is one.
TEST_P(FamilyTest, AProbeSeesTheLayersAttention) {
  AttentionProbe probe;
  probe.ranges = {{60, 70}, {95, 100}};
  int n_reports = 0;
  probe.report = [&](const AttentionProbe::Report& r) {
    const AttentionProbe::Range& range = probe.ranges[r.range];
    const LayerInfo& layer = info().layers[r.il];
    ++n_reports;
    for (int64_t h = 0; h < r.n_head; ++h) {
      double sum = 0;
      for (int64_t j = 0; j < r.n_keys; ++j) {
        const float p = r.sums[h * r.n_keys + j];
        sum += p;
        const int64_t first = layer.attention == AttentionKind::chunked
                                  ? range.begin / layer.window * layer.window
                                  : range.begin + 1 - layer.window;
        if (layer.window > 0 && j < first) {
          ASSERT_EQ(p, 0.0f);
        }
      }
      const auto n_queries = static_cast<double>(range.end - range.begin);
      const bool in_windows = info().architecture == "mimo2" && layer.window > 0;
      const bool in_all = info().architecture == "gpt-oss" || info().architecture == "granite_swa";
      if (in_all || in_windows) {  // there are sinks
        EXPECT_LT(sum, n_queries - 1e-4);
        EXPECT_GT(sum, 0.1 * n_queries);
      } else {
        EXPECT_NEAR(sum, n_queries, 1e-3);
      }
    }
  };
  Session session(model(), options_of("snapkv"));
  session.prefill(prompt(), {.probe = &probe});
  const int64_t n_attending =
      std::count_if(info().layers.begin(), info().layers.end(),
                    [](const LayerInfo& layer) { return layer.attention != AttentionKind::none; });
  EXPECT_EQ(n_reports, 2 * n_attending);
}

TEST(FamilyContextTest, ContextsThatRotateOtherwiseAreNotComputedTogether) {
  const auto model = load_model("phi3-long");  // long factors beyond 64 tokens
  SessionOptions options = options_of("full");
  Session long_context(model, options);
  options.n_ctx = 60;
  Session short_context(model, options);
  Session* both[] = {&long_context, &short_context};
  expect_error(ErrorCode::kUsage, {"n_ctx 60", "4096"},
               [&] { prefill_many(both, generated_ids(20, kFamilyVocab, 1)); });
  for (Session* s : both) s->prefill(generated_ids(20, kFamilyVocab, 1));
  EXPECT_GT(max_difference(long_context.logits(), short_context.logits()), 1e-3);
  const int32_t ids[] = {5, 6};
  expect_error(ErrorCode::kUsage, {"n_ctx 60", "4096"}, [&] { decode_batch(both, ids); });
}

TEST(FamilyContextTest, LearnedPositionsEnd) {
  const auto model = load_model("gpt2");
  SessionOptions options = options_of("full");
  EXPECT_EQ(Session(model, options).n_ctx(), 256);
  options.n_ctx = 257;
  expect_error(ErrorCode::kUsage, {"n_ctx is 257", "256"}, [&] { Session(model, options); });
}

}  // namespace family_tests
}  // namespace snapkv::test
