// SPDX-License-Identifier: MIT
// AttentionProbe: its sums compared with a loop in f64, and what it sees of prompts, turns and
// batches.
#include "engine/prefill/attention_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "tests/backend/op_test_util.h"
#include "tests/policy/selection_oracle.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace attention_probe_tests {

using Range = AttentionProbe::Range;

struct Reported {
  int64_t n_head = 0, n_keys = 0;
  std::vector<float> sums;
  const float* head(int64_t h) const { return sums.data() + h * n_keys; }
};

/// A probe that records its reports by layer and range, and the order of the calls.
struct Recorder {
  explicit Recorder(std::vector<Range> ranges) {
    probe.ranges = std::move(ranges);
    probe.report = [this](const AttentionProbe::Report& r) {
      calls.emplace_back(r.il, r.range);
      ASSERT_EQ(r.sums.size(), static_cast<size_t>(r.n_head * r.n_keys));
      found[{r.il, r.range}] = {r.n_head, r.n_keys, {r.sums.begin(), r.sums.end()}};
    };
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  const Reported& at(int il, size_t range) const { return found.at({il, range}); }

  AttentionProbe probe;
  std::vector<std::pair<int, size_t>> calls;
  std::map<std::pair<int, size_t>, Reported> found;
};

// ---------------------------------------------------------------- compared with a plain loop

constexpr int64_t kHeadDim = 16;

/// The queries and keys of one layer, for prompts after n_past[h] rows of head h.
struct ProbedLayer {
  int64_t n_head, n_head_kv, n_tokens;
  std::vector<int32_t> n_past;  // [n_head_kv]
  std::vector<float> q, k;      // [n_tokens, n_head, kHeadDim], [n_head_kv, capacity, kHeadDim]
  float scale = 0.4f;
  int64_t capacity() const { return n_tokens + *std::max_element(n_past.begin(), n_past.end()); }
};

ProbedLayer random_layer(int64_t n_head, std::vector<int32_t> n_past, int64_t n_tokens) {
  ProbedLayer l{n_head, static_cast<int64_t>(n_past.size()), n_tokens, std::move(n_past), {}, {}};
  l.q = random_values(n_tokens * n_head * kHeadDim, 1);
  l.k = random_values(l.n_head_kv * l.capacity() * kHeadDim, 2);
  return l;
}

/// The definition as a loop in f64.
std::vector<double> loop_sums(const ProbedLayer& l, const Range& range, int64_t h) {
  const int64_t g = h / (l.n_head / l.n_head_kv), n_past = l.n_past[static_cast<size_t>(g)];
  std::vector<double> sums(static_cast<size_t>(n_past + range.end), 0.0);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const float* query = l.q.data() + (i * l.n_head + h) * kHeadDim;
    std::vector<double> p;
    double sum = 0;
    for (int64_t j = 0; j <= n_past + i; ++j) {
      const float* key = l.k.data() + (g * l.capacity() + j) * kHeadDim;
      p.push_back(std::exp(oracle_dot(query, key, kHeadDim) * l.scale));
      sum += p.back();
    }
    for (size_t j = 0; j < p.size(); ++j) sums[j] += p[j] / sum;
  }
  return sums;
}

void run_probe(Backend& backend, const ProbedLayer& l, int64_t chunk, Recorder& recorder) {
  const int64_t first_pos = 100;
  const TestTensor q({l.n_tokens, l.n_head, kHeadDim}, l.q);
  const TestTensor k({l.n_head_kv, l.capacity(), kHeadDim}, l.k);
  ProbeObserver observer(recorder.probe, l.n_tokens, first_pos);
  observer.begin_layer(3);
  for (int64_t begin = 0; begin < l.n_tokens; begin += chunk) {
    const int64_t end = std::min(l.n_tokens, begin + chunk);
    std::vector<int32_t> pos, n_rows;
    for (int64_t t = begin; t < end; ++t) pos.push_back(static_cast<int32_t>(first_pos + t));
    for (int32_t n : l.n_past) n_rows.push_back(n + static_cast<int32_t>(end));
    observer.observe(backend, {q.view().slice(begin, end), pos, k, n_rows, l.scale, {}});
  }
}

void expect_loop_sums(const ProbedLayer& l, const Recorder& recorder) {
  for (size_t i = 0; i < recorder.probe.ranges.size(); ++i) {
    SCOPED_TRACE(i);
    const Range& range = recorder.probe.ranges[i];
    const Reported& r = recorder.at(3, i);
    ASSERT_EQ(r.n_head, l.n_head);
    ASSERT_EQ(r.n_keys, range.end + *std::max_element(l.n_past.begin(), l.n_past.end()));
    for (int64_t h = 0; h < l.n_head; ++h) {
      const std::vector<double> expected = loop_sums(l, range, h);
      for (int64_t j = 0; j < r.n_keys; ++j) {
        const bool own = j < static_cast<int64_t>(expected.size());
        // f32 sums over up to 600 queries; 0 beyond the head's own rows.
        ASSERT_NEAR(r.head(h)[j], own ? expected[static_cast<size_t>(j)] : 0.0, own ? 2e-5 : 0.0)
            << "head " << h << ", column " << j;
      }
    }
  }
}

class ProbeSums : public testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<Backend> backend_ =
      Backend::make({.device = GetParam(), .n_threads = 2, .compute = Compute::f32});
};

TEST_P(ProbeSums, EqualALoopInAnyChunks) {
  // 4 query heads over 2 KV heads, with the same and with different pasts, and one query head for
  // each KV head.
  for (const ProbedLayer& l :
       {random_layer(4, {0, 0}, 70), random_layer(4, {5, 9}, 70), random_layer(3, {0, 4, 2}, 70)}) {
    // One query, the first, last and all tokens, and overlapping ranges in no particular order.
    const std::vector<Range> ranges = {{60, 70}, {0, 1}, {10, 33}, {30, 31}, {0, 70}, {31, 34}};
    for (int64_t chunk : {1, 7, 32, 33, 70}) {
      SCOPED_TRACE(chunk);
      Recorder recorder(ranges);
      run_probe(*backend_, l, chunk, recorder);
      expect_loop_sums(l, recorder);
      EXPECT_EQ(recorder.calls.size(), ranges.size());
      Recorder whole(ranges);
      run_probe(*backend_, l, 70, whole);
      for (size_t i = 0; i < ranges.size(); ++i) {
        EXPECT_EQ(recorder.at(3, i).sums, whole.at(3, i).sums);  // bit for bit
      }
    }
  }
}

TEST_P(ProbeSums, RangesLongerThanAPiece) {
  const ProbedLayer l = random_layer(2, {3}, 640);
  Recorder recorder({{20, 620}, {0, 512}, {100, 613}});
  run_probe(*backend_, l, 200, recorder);
  expect_loop_sums(l, recorder);
}

INSTANTIATE_TEST_SUITE_P(Backends, ProbeSums, testing::Values<std::string>("reference", "cpu"),
                         [](const auto& test) {
                           return test.param == "reference" ? "ref" : "cpu";
                         });

// ---------------------------------------------------------------- in a session

constexpr int64_t kVocab = 512;

SessionOptions options_of(const char* policy, int64_t budget = 64, int64_t chunk = 512) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = budget;
  options.kv.window_size = 16;
  options.kv_type = DType::f32;
  options.chunk = chunk;
  return options;
}

void prefill(Session& session, std::span<const int32_t> ids, const Recorder& recorder) {
  PrefillOptions options;
  options.probe = &recorder.probe;
  session.prefill(ids, options);
}

void expect_close(const Recorder& a, const Recorder& b, double tolerance) {
  ASSERT_EQ(a.calls.size(), b.calls.size());
  for (const auto& [key, x] : a.found) {
    const Reported& y = b.at(key.first, key.second);
    ASSERT_EQ(x.sums.size(), y.sums.size());
    for (size_t i = 0; i < x.sums.size(); ++i) ASSERT_NEAR(x.sums[i], y.sums[i], tolerance) << i;
  }
}

TEST(AttentionProbe, ReportsEveryLayerWhateverTheChunks) {
  const auto ids = generated_ids(150, kVocab, 1);
  const std::vector<Range> ranges = {{140, 150}, {0, 3}, {20, 70}};
  Recorder whole(ranges);
  Session first(load_model("tiny-f32"), options_of("full"));
  prefill(first, ids, whole);
  for (const auto& [key, r] : whole.found) {
    EXPECT_EQ(r.n_head, 4);
    EXPECT_EQ(r.n_keys, ranges[key.second].end);
    for (int64_t h = 0; h < r.n_head; ++h) {  // each query's attention adds up to 1
      double sum = 0;
      for (int64_t j = 0; j < r.n_keys; ++j) sum += r.head(h)[j];
      EXPECT_NEAR(sum, static_cast<double>(ranges[key.second].end - ranges[key.second].begin),
                  1e-4);
    }
  }
  const std::vector<std::pair<int, size_t>> in_one_chunk = {{0, 0}, {0, 1}, {0, 2}, {1, 0},
                                                            {1, 1}, {1, 2}, {2, 0}, {2, 1},
                                                            {2, 2}, {3, 0}, {3, 1}, {3, 2}};
  EXPECT_EQ(whole.calls, in_one_chunk);
  for (int64_t chunk : {7, 64, 149}) {
    SCOPED_TRACE(chunk);
    Recorder recorder(ranges);
    Session session(load_model("tiny-f32"), options_of("full", 64, chunk));
    prefill(session, ids, recorder);
    expect_close(recorder, whole, 1e-4);  // queries and keys of f32 products in another order
  }
  Recorder reference(ranges);
  Session plain(load_model("tiny-f32", Compute::f32, 2, "reference"), options_of("full"));
  prefill(plain, ids, reference);
  expect_close(reference, whole, 1e-4);
}

TEST(AttentionProbe, OfTheWindowGivesTheRowsThatSnapKvKeeps) {
  const auto ids = generated_ids(300, kVocab, 2);
  for (const char* name : {"tiny-f32", "tiny-options"}) {  // two query heads per KV head, or one
    Recorder recorder({{284, 300}});
    Session session(load_model(name), options_of("snapkv", 64, 290));
    prefill(session, ids, recorder);
    const int64_t n_head_kv = session.model().info().n_head_kv;
    for (int il = 0; il < 4; ++il) {
      const Reported& r = recorder.at(il, 0);
      const int64_t n_group = r.n_head / n_head_kv;
      for (int64_t g = 0; g < n_head_kv; ++g) {
        Scores mean(284, 0.0);
        for (int64_t h = g * n_group; h < (g + 1) * n_group; ++h) {
          for (size_t j = 0; j < mean.size(); ++j) mean[j] += r.head(h)[j];
        }
        const Scores pooled = oracle_pool(mean, 7, Pooling::max);
        const auto kept = session.cached_positions(il, static_cast<int>(g));
        EXPECT_TRUE(is_selection(kept, pooled, 16, 48, 0.0)) << name << ", layer " << il;
      }
    }
  }
}

TEST(AttentionProbe, ChangesNothing) {
  const auto ids = generated_ids(200, kVocab, 3);
  for (const char* policy : {"full", "snapkv", "h2o"}) {
    SCOPED_TRACE(policy);
    Session with(load_model("tiny-f32"), options_of(policy));
    Session without(load_model("tiny-f32"), options_of(policy));
    Recorder recorder({{0, 200}, {5, 9}});
    prefill(with, ids, recorder);
    without.prefill(ids);
    ASSERT_EQ(with.logits().size(), without.logits().size());
    for (size_t i = 0; i < with.logits().size(); ++i) {
      // The last layer computes more queries at once.
      ASSERT_NEAR(with.logits()[i], without.logits()[i], 2e-4);
    }
    for (int il = 0; il < 4; ++il) {
      EXPECT_EQ(with.cached_positions(il, 1), without.cached_positions(il, 1));
    }
    EXPECT_EQ(with.stats().kv_bytes_peak, without.stats().kv_bytes_peak);
  }
}

TEST(AttentionProbe, OfAFurtherTurnSeesTheKeptRowsFirst) {
  const auto ids = generated_ids(260, kVocab, 4);
  const auto turn = [&](Session& session, Recorder& recorder) {
    session.prefill(std::span(ids).first(200));
    prefill(session, std::span(ids).subspan(200), recorder);
  };
  // Nothing is dropped, so the result is the same as for one prompt.
  Recorder once({{210, 230}}), full({{10, 30}}), compressed({{10, 30}});
  Session a(load_model("tiny-f32"), options_of("full"));
  prefill(a, ids, once);
  Session b(load_model("tiny-f32"), options_of("full", 64, 25));
  turn(b, full);
  expect_close(full, once, 1e-4);
  // 64 of 200 rows are kept.
  Session c(load_model("tiny-f32"), options_of("snapkv"));
  turn(c, compressed);
  for (int il = 0; il < 4; ++il) {
    const Reported& r = compressed.at(il, 0);
    EXPECT_EQ(r.n_keys, 64 + 30);
    double sum = 0;
    for (int64_t j = 0; j < r.n_keys; ++j) sum += r.head(2)[j];
    EXPECT_NEAR(sum, 20, 1e-4);
    EXPECT_GT(r.head(2)[64 + 9], 0);               // the token before the range
    EXPECT_GT(r.head(2)[64 + 10], r.head(2)[93]);  // seen by all of its queries, and by one
  }
}

TEST(AttentionProbe, OfASharedPromptReportsOnce) {
  const auto ids = generated_ids(120, kVocab, 5);
  Recorder alone({{100, 120}}), shared({{100, 120}});
  Session one(load_model("tiny-f32"), options_of("full"));
  prefill(one, ids, alone);
  Session a(load_model("tiny-f32"), options_of("full"));
  Session b(load_model("tiny-f32"), options_of("snapkv"));
  const std::vector<Session*> both = {&a, &b};
  PrefillOptions options;
  options.probe = &shared.probe;
  prefill_many(both, ids, options);
  EXPECT_EQ(shared.calls.size(), 4u);
  expect_close(shared, alone, 1e-4);
}

TEST(AttentionProbe, BadRangesAndFailingReports) {
  const auto ids = generated_ids(50, kVocab, 6);
  Session session(load_model("tiny-f32"), options_of("full"));
  for (const Range& bad : {Range{-1, 5}, Range{5, 5}, Range{9, 5}, Range{0, 51}, Range{50, 51}}) {
    Recorder recorder({{0, 50}, bad});
    expect_error(ErrorCode::kUsage,
                 {"range 1", std::to_string(bad.begin), std::to_string(bad.end), "[0, 50)"},
                 [&] { prefill(session, ids, recorder); });
    EXPECT_TRUE(recorder.calls.empty());
  }
  Recorder silent({{0, 5}});
  silent.probe.report = nullptr;
  expect_error(ErrorCode::kUsage, {"report"}, [&] { prefill(session, ids, silent); });

  Recorder throwing({{0, 5}});
  throwing.probe.report = [](const AttentionProbe::Report& r) {
    if (r.il == 2) throw Error(ErrorCode::kRuntime, "enough");
  };
  expect_error(ErrorCode::kRuntime, {"enough"}, [&] { prefill(session, ids, throwing); });
  EXPECT_EQ(session.n_past(), 0);
  Recorder none({});  // without ranges there are no reports
  prefill(session, ids, none);
  EXPECT_TRUE(none.calls.empty());
  EXPECT_EQ(session.n_past(), 50);
}

}  // namespace attention_probe_tests
}  // namespace snapkv::test
