// SPDX-License-Identifier: MIT
// Sessions: layer-major prefill, compression, further turns, batched decoding, cancellation,
// limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "snapkv/prefill.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/processor.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace session_tests {

/// The most that two logits may differ if the last layer was computed for other rows besides the
/// last one, as some policies need. With AVX2, the order in which oneDNN adds the products of a row
/// depends on the number of rows (differences of 1e-6 were seen).
constexpr double kOtherRows = 1e-5;

TEST(SessionTest, EveryDeviceAndChunkComputesTheSame) {
  const auto ids = generated_ids(150, kVocab, 1);
  Session reference(load_model("tiny-f32", Compute::f32, 2, "reference"), full_options());
  reference.prefill(ids);
  for (int64_t chunk : {1, 7, 32, 149, 150, 512}) {
    SCOPED_TRACE(chunk);
    SessionOptions options = full_options();
    options.chunk = chunk;
    Session session(load_model("tiny-f32"), options);
    session.prefill(ids);
    // Logits spread over about 2; f32 sums of 352 terms are in another order.
    EXPECT_LT(max_difference(session.logits(), reference.logits()), 2e-4);
  }
}

TEST(SessionTest, ShortAndLongPromptsTakeDifferentKernelsToTheSameResult) {
  for (int64_t n : {1, 2, 31, 33, 79, 80, 81}) {  // packed from 80 on
    SCOPED_TRACE(n);
    const auto ids = generated_ids(n, kVocab, 2);
    Session a(load_model("tiny-q8_0", Compute::f32, 2, "reference"), full_options());
    Session b(load_model("tiny-q8_0"), full_options());
    a.prefill(ids);
    b.prefill(ids);
    EXPECT_LT(max_difference(a.logits(), b.logits()), 2e-4);
  }
}

TEST(SessionTest, Bf16StaysCloseToF32) {
  if (!runs(Compute::bf16)) GTEST_SKIP() << "this processor multiplies no bf16";
  const auto ids = generated_ids(200, kVocab, 3);
  for (const char* name :
       {"tiny-f16", "tiny-bf16", "tiny-q8_0", "tiny-q4_0", "tiny-q4_k", "tiny-q5_k", "tiny-q6_k"}) {
    SCOPED_TRACE(name);
    Session exact(load_model(name), full_options());
    Session rounded(load_model(name, Compute::bf16), full_options());
    exact.prefill(ids);
    rounded.prefill(ids);
    // Activations keep 8 bits: a relative error of 2^-9 per product, over 4 layers of a model with
    // large weights.
    EXPECT_LT(max_difference(exact.logits(), rounded.logits()), 0.25);
    exact.decode(5);
    rounded.decode(5);
    EXPECT_LT(max_difference(exact.logits(), rounded.logits()), 0.25);
  }
}

TEST(SessionTest, LogitsOfManyTokensEqualThoseOfEachPrefix) {
  const auto ids = generated_ids(60, kVocab, 4);
  Session all(load_model("tiny-f32"), full_options());
  PrefillOptions options;
  options.n_logits = 1000;  // more than there are, so all of them
  all.prefill(ids, options);
  for (size_t n : {1u, 20u, 59u, 60u}) {
    Session prefix(load_model("tiny-f32"), full_options());
    prefix.prefill(std::span(ids).first(n));
    EXPECT_LT(max_difference(all.prefill_logits(static_cast<int64_t>(n) - 1), prefix.logits()),
              2e-4);
  }
  EXPECT_EQ(error_of([&] { all.prefill_logits(60); }), ErrorCode::kUsage);
  EXPECT_EQ(max_difference(all.logits(), all.prefill_logits(59)), 0);
}

// Of more tokens than one step reports, beside which others decode.
TEST(SessionTest, LogitsAreReportedInOrder) {
  const auto ids = generated_ids(300, kVocab, 4);
  Session all(load_model("tiny-f32"), full_options());
  all.prefill(ids, {.n_logits = 290});
  Session reported(load_model("tiny-f32"), full_options());
  Session other(load_model("tiny-f32"), full_options());
  other.prefill(std::span(ids).first(5));
  int64_t next = 10;
  PrefillPrompt prompt;
  prompt.sessions = {&reported};
  prompt.tokens = ids;
  prompt.options.n_logits = 290;
  prompt.options.on_logits = [&](int64_t token, std::span<const float> logits) {
    EXPECT_EQ(token, next++);
    EXPECT_EQ(max_difference(all.prefill_logits(token - 10), logits), 0) << token;
  };
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) other.decode(5);
  EXPECT_EQ(next, 300);
  EXPECT_EQ(max_difference(all.logits(), reported.logits()), 0);
  EXPECT_EQ(error_of([&] { reported.prefill_logits(1); }), ErrorCode::kUsage);
  EXPECT_LT(reported.stats().planned_bytes, all.stats().planned_bytes);
}

TEST(SessionTest, ThreadsDoNotChangeTheResult) {
  const auto ids = generated_ids(300, kVocab, 5);
  for (Compute compute : {Compute::f32, Compute::bf16}) {
    if (!runs(compute)) continue;
    for (const char* name :
         {"tiny-f16", "tiny-q8_0", "tiny-q4_0", "tiny-q4_k", "tiny-q5_k", "tiny-q6_k"}) {
      SCOPED_TRACE(name);
      Session one(load_model(name, compute, 1), snapkv_options(64));
      Session two(load_model(name, compute, 2), snapkv_options(64));
      one.prefill(ids);
      two.prefill(ids);
      EXPECT_EQ(copy(one.logits()), copy(two.logits()));
      for (int i = 0; i < 3; ++i) {
        one.decode(7 + i);
        two.decode(7 + i);
      }
      EXPECT_EQ(copy(one.logits()), copy(two.logits()));
      EXPECT_EQ(one.cached_positions(1, 1), two.cached_positions(1, 1));
    }
  }
}

TEST(SessionTest, ABudgetThatHoldsThePromptChangesNothing) {
  const auto ids = generated_ids(100, kVocab, 6);
  Session full(load_model("tiny-f32"), full_options());
  Session roomy(load_model("tiny-f32"), snapkv_options(100));
  full.prefill(ids);
  roomy.prefill(ids);
  full.decode(9);
  roomy.decode(9);
  EXPECT_EQ(copy(full.logits()), copy(roomy.logits()));
  EXPECT_EQ(roomy.stats().layers[0].n_kept[0], 100);
}

TEST(SessionTest, KeepsTheBudgetAndTheWindowInEveryHead) {
  const int64_t n = 400, budget = 64, window = 16;
  const auto ids = generated_ids(n, kVocab, 7);
  Session session(load_model("tiny-f32"), snapkv_options(budget, window));
  session.prefill(ids);
  for (int il = 0; il < 4; ++il) {
    for (int head = 0; head < 2; ++head) {
      const auto pos = session.cached_positions(il, head);
      ASSERT_EQ(pos.size(), static_cast<size_t>(budget));
      EXPECT_TRUE(std::is_sorted(pos.begin(), pos.end()));
      EXPECT_TRUE(std::adjacent_find(pos.begin(), pos.end()) == pos.end());
      for (int i = 0; i < window; ++i) {
        EXPECT_EQ(pos[static_cast<size_t>(budget - window + i)], n - window + i);
      }
    }
  }
  // Each head chooses for itself.
  EXPECT_NE(session.cached_positions(1, 0), session.cached_positions(1, 1));
}

TEST(SessionTest, GeneratedTokensTakeTheirTruePositions) {
  const auto ids = generated_ids(200, kVocab, 8);
  SessionOptions options = snapkv_options(40);
  options.decode_reserve = 3;  // grows twice below
  Session session(load_model("tiny-f32"), options);
  session.prefill(ids);
  for (int i = 0; i < 7; ++i) session.decode(10 + i);
  const auto pos = session.cached_positions(3, 0);
  ASSERT_EQ(pos.size(), 47u);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(pos[static_cast<size_t>(40 + i)], 200 + i);
  EXPECT_EQ(session.n_past(), 207);
  EXPECT_EQ(session.stats().n_decoded, 7);
}

/// Evicted rows must not matter if nothing attends to them: with a budget of all but one row the
/// answer stays close, with a tiny one it changes. This guards against a selection that is not
/// applied.
TEST(SessionTest, EvictionHasAnEffectThatShrinksWithTheBudget) {
  const auto ids = generated_ids(300, kVocab, 9);
  Session full(load_model("tiny-f32"), full_options());
  full.prefill(ids);
  const auto after_prefill = copy(full.logits());
  full.decode(20);
  double last = 1e9;
  for (int64_t budget : {20, 100, 280}) {
    Session session(load_model("tiny-f32"), snapkv_options(budget));
    session.prefill(ids);
    // The prompt itself was read with the whole layer.
    EXPECT_LT(max_difference(session.logits(), after_prefill), kOtherRows) << budget;
    session.decode(20);
    const double difference = max_difference(session.logits(), full.logits());
    EXPECT_GT(difference, 0) << budget;
    EXPECT_LT(difference, last) << budget;
    last = difference;
  }
}

TEST(SessionTest, PeakMemoryIsOneLayerAndTheKeptRows) {
  const int64_t n = 600;
  SessionOptions options = snapkv_options(64);
  options.kv_type = DType::f16;
  options.decode_reserve = 1;
  Session session(load_model("tiny-f32"), options);
  session.prefill(generated_ids(n, kVocab, 10));
  const SessionStats& stats = session.stats();
  const size_t row = 2 * 32 * 2 + 4;  // K and V of 32 f16, and the position
  EXPECT_EQ(stats.kv_bytes, 4u * 2u * 65u * row);
  session.decode(4);
  EXPECT_EQ(stats.kv_bytes_full, 4u * 2u * 601u * row);
  EXPECT_EQ(stats.kv_bytes_peak, (2u * 600u + 4u * 2u * 65u) * row);  // one layer + kept rows
  EXPECT_EQ(stats.kv_bytes, 4u * 2u * 65u * row);
  EXPECT_EQ(stats.kv_bytes_used, stats.kv_bytes);
  const MemoryPlan plan = plan_memory(load_model("tiny-f32")->info(), options, n, DType::f32);
  EXPECT_EQ(plan.kv_peak(), stats.kv_bytes_peak);
  EXPECT_EQ(plan.kv_full, 4u * 2u * 600u * row);
}

TEST(SessionTest, AFullCacheTakesNoMoreThanItself) {
  SessionOptions options = full_options();
  options.decode_reserve = 8;
  Session session(load_model("tiny-f32"), options);
  session.prefill(generated_ids(200, kVocab, 11));
  const size_t row = 2 * 32 * 4 + 4;
  EXPECT_EQ(session.stats().kv_bytes_peak, 4u * 2u * 208u * row);
}

TEST(SessionTest, FurtherTurnsEqualOnePrompt) {
  const auto ids = generated_ids(140, kVocab, 12);
  Session once(load_model("tiny-f32"), full_options());
  once.prefill(ids);
  Session turns(load_model("tiny-f32"), full_options());
  turns.prefill(std::span(ids).first(80));
  turns.prefill(std::span(ids).subspan(80, 5));   // few tokens: weights are read directly
  turns.prefill(std::span(ids).subspan(85, 54));  // many tokens: weights are packed
  turns.decode(ids[139]);
  EXPECT_EQ(turns.n_past(), 140);
  EXPECT_LT(max_difference(once.logits(), turns.logits()), 2e-4);
}

TEST(SessionTest, AFurtherTurnIsCompressedToo) {
  const auto ids = generated_ids(500, kVocab, 13);
  Session session(load_model("tiny-f32"), snapkv_options(48));
  session.prefill(std::span(ids).first(300));
  session.decode(3);
  session.prefill(std::span(ids).subspan(300, 150));
  session.prefill(std::span(ids).subspan(450, 4));  // shorter than the window
  EXPECT_EQ(session.n_past(), 455);
  for (int il = 0; il < 4; ++il) {
    const auto pos = session.cached_positions(il, 1);
    EXPECT_EQ(pos.size(), 48u);
    EXPECT_TRUE(std::is_sorted(pos.begin(), pos.end()));
    for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(pos[static_cast<size_t>(44 + i)], 451 + i);
  }
}

TEST(SessionTest, AFurtherTurnCanBeKeptWhole) {
  const auto ids = generated_ids(360, kVocab, 13);
  // ada-snapkv has heads of different lengths; h2o observes all queries.
  for (const char* policy : {"snapkv", "ada-snapkv", "h2o", "full"}) {
    for (const DType type : {DType::f32, DType::q8_0}) {
      SCOPED_TRACE(policy);
      SCOPED_TRACE(name(type));
      SessionOptions options = of_type(snapkv_options(48), type);
      options.kv.name = policy;
      Session turns(load_model("tiny-f32"), options), steps(load_model("tiny-f32"), options);
      turns.prefill(std::span(ids).first(300));
      steps.prefill(std::span(ids).first(300));
      const auto before = turns.cached_positions(2, 1);
      turns.prefill(std::span(ids).subspan(300), {.compress = false});
      auto expected = before;  // the kept rows of the text, then all of the question
      for (int32_t pos = 300; pos < 360; ++pos) expected.push_back(pos);
      EXPECT_EQ(turns.cached_positions(2, 1), expected);
      for (size_t i = 300; i < 360; ++i) steps.decode(ids[i]);
      // q8_0: the turn reads its own rows as f16, while decode steps read them quantized.
      EXPECT_LT(max_difference(turns.logits(), steps.logits()), type == DType::f32 ? 2e-4 : 0.25);
    }
  }
}

TEST(SessionTest, ABatchDecodesAsEachAlone) {
  const auto model = load_model("tiny-q8_0");
  std::vector<Session> alone, batched;
  for (int i = 0; i < 5; ++i) {
    const auto ids = generated_ids(20 + 37 * i, kVocab, 14 + static_cast<uint32_t>(i));
    const SessionOptions options = i % 2 == 0 ? full_options() : snapkv_options(40);
    alone.emplace_back(model, options);
    batched.emplace_back(model, options);
    alone.back().prefill(ids);
    batched.back().prefill(ids);
  }
  std::vector<Session*> batch;
  for (Session& s : batched) batch.push_back(&s);
  for (int step = 0; step < 3; ++step) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 5; ++i) tokens.push_back(30 + 11 * step + i);
    decode_batch(batch, tokens);
    for (size_t i = 0; i < 5; ++i) alone[i].decode(tokens[i]);
  }
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_LT(max_difference(alone[i].logits(), batched[i].logits()), 1e-4) << i;
  }
  batch.push_back(batch[0]);
  EXPECT_EQ(error_of([&] { decode_batch(batch, std::vector<int32_t>(6, 5)); }), ErrorCode::kUsage);
}

TEST(SessionTest, CancellationLeavesTheSessionAsItWas) {
  const auto ids = generated_ids(300, kVocab, 15);
  for (const SessionOptions& options :
       {full_options(), snapkv_options(64), of_type(full_options(), DType::q8_0),
        of_type(snapkv_options(64), DType::q8_0)}) {
    Session session(load_model("tiny-f32"), options), untouched(load_model("tiny-f32"), options);
    for (Session* s : {&session, &untouched}) s->prefill(std::span(ids).first(100));
    PrefillOptions cancelling;
    double seen = 0;
    cancelling.progress = [&](const Progress& p) {
      EXPECT_EQ(p.phase, Phase::prefill);
      EXPECT_GE(p.fraction, seen);
      seen = p.fraction;
      return p.fraction < 0.6;
    };
    EXPECT_EQ(error_of([&] { session.prefill(std::span(ids).subspan(100), cancelling); }),
              ErrorCode::kCancelled);
    EXPECT_GE(seen, 0.6);
    EXPECT_EQ(session.n_past(), 100);
    EXPECT_EQ(session.stats().n_prompt, 100);
    for (int il = 0; il < 4; ++il) {
      EXPECT_EQ(session.cached_positions(il, 0), untouched.cached_positions(il, 0));
    }
    session.decode(8);
    untouched.decode(8);
    EXPECT_EQ(copy(session.logits()), copy(untouched.logits()));
  }
}

TEST(SessionTest, OnePrefillForManyPoliciesEqualsSeparateOnes) {
  const auto ids = generated_ids(260, kVocab, 18);
  const std::vector<SessionOptions> options = {full_options(), snapkv_options(64),
                                               snapkv_options(40, 8), snapkv_options(300)};
  std::vector<Session> alone, together;
  for (const SessionOptions& o : options) {
    alone.emplace_back(load_model("tiny-f32"), o);
    together.emplace_back(load_model("tiny-f32"), o);
  }
  std::vector<Session*> all;
  for (Session& s : together) all.push_back(&s);
  prefill_many(all, ids);
  for (size_t i = 0; i < options.size(); ++i) {
    SCOPED_TRACE(i);
    alone[i].prefill(ids);
    EXPECT_LT(max_difference(alone[i].logits(), together[i].logits()), kOtherRows);
    EXPECT_EQ(alone[i].cached_positions(2, 1), together[i].cached_positions(2, 1));
    alone[i].decode(33);
    together[i].decode(33);
    EXPECT_LT(max_difference(alone[i].logits(), together[i].logits()), kOtherRows);
    EXPECT_EQ(alone[i].stats().kv_bytes_used, together[i].stats().kv_bytes_used);
  }
  EXPECT_EQ(error_of([&] { prefill_many(all, ids); }), ErrorCode::kUsage);  // no longer empty
}

TEST(SessionTest, ResetStartsAnew) {
  const auto ids = generated_ids(90, kVocab, 16);
  Session session(load_model("tiny-f32"), snapkv_options(40));
  session.prefill(generated_ids(120, kVocab, 17));
  session.reset();
  EXPECT_EQ(session.n_past(), 0);
  EXPECT_TRUE(session.logits().empty());
  session.prefill(ids);
  Session other(load_model("tiny-f32"), snapkv_options(40));
  other.prefill(ids);
  EXPECT_EQ(copy(session.logits()), copy(other.logits()));
}

TEST(SessionTest, HiddenStatesInAFileComputeTheSame) {
  const auto model = load_model("tiny-f32");
  const auto ids = generated_ids(130, kVocab, 21);
  for (const SessionOptions& in_memory : {full_options(), snapkv_options(40)}) {
    SessionOptions in_file = in_memory;
    in_file.chunk = 16;  // the last chunk is incomplete
    in_file.spill_dir = ::testing::TempDir();
    Session expected(model, in_memory), session(model, in_file);
    for (const auto& part : {std::span(ids).first(90), std::span(ids).subspan(90)}) {
      expected.prefill(part);
      session.prefill(part);
      EXPECT_LT(max_difference(session.logits(), expected.logits()), 1e-4);
    }
    expected.decode(7);
    session.decode(7);
    EXPECT_LT(max_difference(session.logits(), expected.logits()), 1e-4);
  }
}

TEST(SessionTest, SpillingNeedsMemoryForTwoChunks) {
  const auto model = load_model("tiny-f32");
  SessionOptions options = snapkv_options(40);
  options.chunk = 16;
  const MemoryPlan in_memory = plan_memory(model->info(), options, 1000, DType::f32);
  options.spill_dir = "/nowhere";
  const MemoryPlan in_file = plan_memory(model->info(), options, 1000, DType::f32);
  const size_t row = static_cast<size_t>(model->info().n_embd) * sizeof(float);
  EXPECT_EQ(in_memory.hidden_states, 1000 * row);
  EXPECT_EQ(in_file.hidden_states, 32 * row);
  EXPECT_EQ(in_memory.total() - in_file.total(), 968 * row);

  Session session(model, options);
  const auto ids = generated_ids(100, kVocab, 22);
  expect_error(ErrorCode::kRuntime, {"'/nowhere'"}, [&] { session.prefill(ids); });
  EXPECT_EQ(session.n_past(), 0);
}

TEST(SessionTest, LimitsAndBadArguments) {
  const auto model = load_model("tiny-f32");
  SessionOptions options = full_options();
  options.n_ctx = 50;
  Session session(model, options);
  EXPECT_EQ(error_of([&] { session.decode(5); }), ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { session.prefill({}); }), ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { session.prefill(generated_ids(51, kVocab, 1)); }),
            ErrorCode::kContextExceeded);
  EXPECT_EQ(error_of([&] { session.prefill(std::vector<int32_t>{5, 512}); }), ErrorCode::kUsage);
  EXPECT_EQ(error_of([&] { session.prefill(std::vector<int32_t>{-1}); }), ErrorCode::kUsage);
  session.prefill(generated_ids(49, kVocab, 1));
  EXPECT_EQ(error_of([&] { session.decode(512); }), ErrorCode::kUsage);
  session.decode(5);
  EXPECT_EQ(error_of([&] { session.decode(5); }), ErrorCode::kContextExceeded);
  EXPECT_EQ(error_of([&] { session.prefill(generated_ids(1, kVocab, 1)); }),
            ErrorCode::kContextExceeded);

  options = full_options();
  options.memory_limit = 1 << 16;
  Session small(model, options);
  EXPECT_EQ(error_of([&] { small.prefill(generated_ids(400, kVocab, 1)); }),
            ErrorCode::kDoesNotFit);

  for (const auto& change : std::vector<std::function<void(SessionOptions&)>>{
           [](SessionOptions& o) { o.kv_type = DType::q4_0; },
           [](SessionOptions& o) { o.chunk = -1; }, [](SessionOptions& o) { o.n_ctx = -1; },
           [](SessionOptions& o) { o.kv.params["kernel_size"] = 4; },
           [](SessionOptions& o) { o.kv.budget = o.kv.window_size; },
           [](SessionOptions& o) { o.kv.name = "nothing"; }}) {
    SessionOptions bad = snapkv_options(64);
    change(bad);
    EXPECT_EQ(error_of([&] { Session s(model, bad); }), ErrorCode::kUsage);
  }
}

}  // namespace session_tests
}  // namespace snapkv::test
