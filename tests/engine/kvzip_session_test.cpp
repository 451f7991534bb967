// SPDX-License-Identifier: MIT
// Sessions with "kvzip": which rows stay of a prompt, compared with the attention that a probe sees
// when the same tokens are read as a plain prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "engine/prefill/replay.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace kvzip_session_tests {

constexpr int kWindow = 8, kSinks = 4;

SessionOptions zipped(int64_t budget) {
  SessionOptions options;
  options.kv = {.name = "kvzip", .budget = budget, .window_size = kWindow, .sinks = kSinks};
  options.kv_type = DType::f32;
  return options;
}

SessionOptions full_options() {
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f32;
  return options;
}

std::vector<int32_t> text(const Model& model, int64_t n, uint32_t seed = 1) {
  return generated_ids(n, model.info().n_vocab, seed);
}

/// The largest difference of their logits.
double difference(const Session& a, const Session& b) {
  double most = 0;
  for (size_t i = 0; i < a.logits().size(); ++i) {
    most = std::max<double>(most, std::abs(a.logits()[i] - b.logits()[i]));
  }
  return most;
}

using Kept = std::map<std::pair<int, int>, std::vector<int32_t>>;  // by layer and head

Kept kept_of(const Session& session) {
  Kept kept;
  const ModelInfo& info = session.model().info();
  for (int il = 0; il < info.n_layer; ++il) {
    if (!info.layers[il].compressed || info.layers[il].rows_of >= 0) continue;
    for (int h = 0; h < info.layers[il].n_head_kv; ++h) {
      kept[{il, h}] = session.cached_positions(il, h);
    }
  }
  return kept;
}

size_t n_rows(const Kept& kept) {
  return std::accumulate(kept.begin(), kept.end(), size_t{0},
                         [](size_t n, const auto& head) { return n + head.second.size(); });
}

/// Scores by layer and head: the strongest attention of any of the replays' tokens, as a probe of
/// the prompt with one replay after it reports each.
std::map<std::pair<int, int>, std::vector<double>> probed_scores(
    const std::shared_ptr<const Model>& model, const std::vector<int32_t>& prompt) {
  std::map<std::pair<int, int>, std::vector<double>> scores;
  const int64_t n = std::ssize(prompt);
  for (const Replay& replay : make_replays(*model, prompt)) {
    std::vector<int32_t> tokens = prompt;
    tokens.insert(tokens.end(), replay.tokens.begin(), replay.tokens.end());
    AttentionProbe probe;
    for (int64_t i = n; i < std::ssize(tokens); ++i) probe.ranges.push_back({i, i + 1});
    probe.report = [&](const AttentionProbe::Report& r) {
      const std::vector<LayerInfo>& layers = model->info().layers;
      const int rows_of = layers[r.il].rows_of >= 0 ? layers[r.il].rows_of : r.il;
      if (!layers[rows_of].compressed) return;
      const int64_t n_group = r.n_head / layers[rows_of].n_head_kv;
      for (int64_t h = 0; h < r.n_head; ++h) {
        std::vector<double>& best = scores[{rows_of, static_cast<int>(h / n_group)}];
        best.resize(n);
        const float* const p = r.sums.data() + h * r.n_keys;
        const int64_t begin = std::max<int64_t>(kSinks, replay.begin);
        // of the softmax: the sinks, the piece, and the replay's own rows
        const double whole = std::accumulate(p, p + kSinks, 0.0) +
                             std::accumulate(p + begin, p + replay.end, 0.0) +
                             std::accumulate(p + n, p + r.n_keys, 0.0);
        for (int64_t j = replay.begin; j < replay.end; ++j) {
          best[j] = std::max(best[j], p[j] / whole);
        }
      }
    };
    Session session(model, full_options());
    session.prefill(tokens, {.probe = &probe});
  }
  return scores;
}

/// The best rows of all layers and heads.
Kept best_rows(std::map<std::pair<int, int>, std::vector<double>> scores, int64_t budget) {
  std::vector<double> all;
  for (auto& [head, row] : scores) {
    std::fill_n(row.begin(), kSinks, 2.0);
    std::fill(row.end() - kWindow, row.end(), 2.0);
    all.insert(all.end(), row.begin(), row.end());
  }
  const int64_t total = budget * std::ssize(scores);
  std::nth_element(all.begin(), all.begin() + total - 1, all.end(), std::greater<>());
  const double least = all[total - 1];
  Kept kept;
  for (const auto& [head, row] : scores) {
    for (int32_t j = 0; j < std::ssize(row); ++j) {
      if (row[j] >= least) kept[head].push_back(j);
    }
  }
  return kept;
}

/// How many rows of b are not in a.
size_t n_missing(const Kept& a, const Kept& b) {
  size_t n = 0;
  for (const auto& [head, rows] : b) {
    for (const int32_t row : rows) n += !std::ranges::binary_search(a.at(head), row);
  }
  return n;
}

void expect_best_rows(const char* name, int64_t n_tokens, int64_t budget) {
  const auto model = load_model(name);
  const std::vector<int32_t> prompt = text(*model, n_tokens);
  Session session(model, zipped(budget));
  session.prefill(prompt);
  const Kept kept = kept_of(session), expected = best_rows(probed_scores(model, prompt), budget);
  EXPECT_EQ(n_rows(kept), budget * kept.size());
  EXPECT_EQ(n_rows(expected), budget * kept.size());
  // rounding may exchange rows of nearly equal scores
  EXPECT_LE(n_missing(kept, expected), 2u);
}

TEST(KvzipSession, KeepsTheBestRowsOfAllLayersAndHeads) { expect_best_rows("tiny-f32", 300, 40); }

TEST(KvzipSession, LayersThatReadOthersRowsAskForThemToo) { expect_best_rows("gemma4-e", 200, 40); }

TEST(KvzipSession, RepeatsLongPromptsInPieces) {
  expect_best_rows("tiny-f32", kReplayPiece + 40, 100);
}

TEST(KvzipSession, HeadsKeepDifferentNumbersOfRows) {
  const auto model = load_model("tiny-f32");
  Session session(model, zipped(60));
  session.prefill(text(*model, 400));
  const Kept kept = kept_of(session);
  size_t least = 400, most = 0;
  for (const auto& [head, rows] : kept) {
    least = std::min(least, rows.size());
    most = std::max(most, rows.size());
    EXPECT_EQ(rows[kSinks - 1], kSinks - 1);
    EXPECT_EQ(rows[rows.size() - kWindow], 400 - kWindow);
  }
  EXPECT_LT(least, most);
  for (int il = 0; il < model->info().n_layer; ++il) {  // the statistics know it too
    for (int h = 0; h < model->info().layers[il].n_head_kv; ++h) {
      EXPECT_EQ(session.stats().layers[il].n_kept[h], std::ssize(kept.at({il, h})));
    }
  }
}

TEST(KvzipSession, TheReplayLeavesNoTrace) {
  const auto model = load_model("tiny-f32");
  const std::vector<int32_t> prompt = text(*model, 300);
  Session full(model, full_options()), zip(model, zipped(40)), whole(model, zipped(300));
  for (Session* s : {&full, &zip, &whole}) s->prefill(prompt);
  // The last layer computes queries that it otherwise skips, and rounds others.
  EXPECT_LT(difference(zip, full), 1e-4);
  EXPECT_EQ(zip.n_past(), 300);
  for (Session* s : {&full, &zip, &whole}) s->decode(7);
  EXPECT_EQ(difference(whole, full), 0.0) << "nothing was dropped";
  EXPECT_GT(difference(zip, full), 1e-3);
}

TEST(KvzipSession, ChunksAndOtherSessionsMakeNoDifference) {
  const auto model = load_model("tiny-f32");
  const std::vector<int32_t> prompt = text(*model, 500);
  Session alone(model, zipped(50));
  alone.prefill(prompt);
  SessionOptions options = zipped(50);
  options.chunk = 64;
  Session in_chunks(model, options);
  in_chunks.prefill(prompt);
  EXPECT_LE(n_missing(kept_of(alone), kept_of(in_chunks)), 2u);
  Session wide(model, zipped(90)), narrow(model, zipped(50)), full(model, full_options());
  Session* all[] = {&wide, &narrow, &full};
  prefill_many(all, prompt);
  EXPECT_EQ(kept_of(narrow), kept_of(alone));
  EXPECT_EQ(n_missing(kept_of(wide), kept_of(narrow)), 0u);
  EXPECT_EQ(n_rows(kept_of(full)), 500 * kept_of(full).size());
}

TEST(KvzipSession, LaterTurnsAreKeptWhole) {
  const auto model = load_model("tiny-f32");
  Session session(model, zipped(40));
  session.prefill(text(*model, 300));
  const Kept before = kept_of(session);
  session.prefill(text(*model, 50, 2));
  for (const auto& [head, rows] : kept_of(session)) {
    EXPECT_EQ(rows.size(), before.at(head).size() + 50);
    EXPECT_TRUE(std::equal(before.at(head).begin(), before.at(head).end(), rows.begin()));
  }
}

TEST(KvzipSession, ModelsWithRecurrentLayersGoOnFromThePrompt) {
  for (const char* name : {"lfm2", "falcon-h1", "qwen3next"}) {
    SCOPED_TRACE(name);
    const auto model = load_model(name);
    const std::vector<int32_t> prompt = text(*model, 150);
    Session full(model, full_options()), zip(model, zipped(149));
    for (Session* s : {&full, &zip}) {
      s->prefill(prompt);
      s->decode(7);
    }
    // As good as nothing was dropped, so that the logits differ only if other states do.
    const auto [low, high] = std::ranges::minmax(full.logits());
    EXPECT_LT(difference(zip, full), 0.02 * (high - low));
  }
}

TEST(KvzipSession, TakesNoMoreThanThePlan) {
  const auto model = load_model("tiny-f32");
  for (const int64_t n : {300, 3000}) {
    SessionOptions options = zipped(60);
    const MemoryPlan plan = model->plan(options, n);
    Session session(model, options);
    session.prefill(text(*model, n));
    EXPECT_LE(session.stats().kv_bytes_peak, plan.kv_peak());
    EXPECT_EQ(session.stats().kv_bytes, plan.kv_kept);
    options.memory_limit = plan.total() - plan.weights;
    Session limited(model, options);
    EXPECT_NO_THROW(limited.prefill(text(*model, n)));
  }
}

TEST(KvzipSession, SaysWhatItCannotDo) {
  const auto model = load_model("tiny-f32");
  SessionOptions draft = zipped(40);
  draft.draft = Draft::self;
  expect_error(ErrorCode::kUsage, {"draft", "kvzip", "once"}, [&] { Session(model, draft); });
}

}  // namespace kvzip_session_tests
}  // namespace snapkv::test
