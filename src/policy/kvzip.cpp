// SPDX-License-Identifier: MIT
// Policy "kvzip" (Kim et al., arXiv 2505.23416): for text that is read before its question is
// known. The prompt is read again as the answer to a request to repeat it, piece by piece
// (engine/prefill/replay.h). The score of a row is the strongest attention that any query of the
// replay of its piece, in any query head of the group, gives it (equation 1): what a model needs to
// say a text again, it needs for whatever is asked about the text. As in the authors' code, the
// softmax is over the first rows (`sinks`), the rows of the piece, and the replay's own, so that it
// does not depend on how long the prompt is.
//
// All layers and heads share the budget: the rows that copy a text are in few heads, and these keep
// nearly all of theirs. With the same number of rows in each head most of that is lost
// (docs/quality.md).
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/error.h"
#include "policy/finite_scores.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

/// Queries per op, whose memory grows with them.
constexpr int64_t kReplayQueries = 256;

struct KvzipParams : RowParams {
  KvzipParams() {
    window_size = 8;
    sinks = 4;
  }
};

class KvzipSelector final : public LayerSelector {
 public:
  KvzipSelector(Backend& backend, const PolicyInfo& info, const KvzipParams& params)
      : backend_(backend), info_(info), params_(params) {}

  void observe(const QueryChunk& chunk) override {
    const int64_t n = chunk.q.shape[0];
    if (chunk.replay.n_own == 0) return;  // the prompt itself
    if (!best_) begin(chunk);
    for (int64_t begin = 0; begin < n; begin += kReplayQueries) {
      const int64_t end = std::min(n, begin + kReplayQueries);
      for (int64_t h = 0; h < chunk.k.shape[0]; ++h) add(chunk, h, begin, end);
      if (!backend_.computes()) return;  // the first ones take the most memory
    }
  }

  Selection select(const PolicyInput&, int64_t) override { fail_without_replay(); }

  RowScores score_rows(const PolicyInput& input) override {
    if (!best_) fail_without_replay();
    RowScores scores;
    scores.n_rows.assign(input.n_rows.begin(), input.n_rows.end());
    const int64_t most = best_.shape[1];
    scores.storage = backend_.allocate_host(best_.numel() * sizeof(float), "scores");
    scores.view = scores.storage.view(DType::f32, {best_.shape[0], most});
    if (!backend_.computes()) return scores;
    for (int64_t h = 0; h < best_.shape[0]; ++h) {
      const int32_t n = scores.n_rows[h];
      SNAPKV_CHECK(n <= most);
      const std::span<const float> best(best_.at<const float>(h), n);
      require_finite_scores(input.il, h, best);
      float* const of_head = scores.view.at<float>(h);
      std::ranges::copy(best, of_head);
      std::fill_n(of_head, std::min(n, params_.sinks), kStays);
      std::fill(of_head + std::max(0, n - params_.window_size), of_head + n, kStays);
    }
    return scores;
  }

 private:
  static constexpr float kStays = std::numeric_limits<float>::infinity();

  [[noreturn]] void fail_without_replay() const {
    fail(ErrorCode::kUsage,
         "policy \"{}\" needs every query of the prompt and of its repetition, and here only the "
         "window's are known",
         info_.name);
  }

  void begin(const QueryChunk& chunk) {
    const int64_t n_head_kv = chunk.k.shape[0];
    const int64_t most = *std::max_element(chunk.n_rows.begin(), chunk.n_rows.end());
    storage_ = backend_.allocate_host(n_head_kv * most * sizeof(float), "attention of replays");
    best_ = storage_.view(DType::f32, {n_head_kv, most});
    if (backend_.computes()) std::fill_n(best_.at<float>(0), best_.numel(), 0.0f);
  }

  /// The rows of a head that the replay's queries up to `end` are compared with; the last ones are
  /// the replay's.
  std::vector<int32_t> rows_of(const QueryChunk& chunk, int64_t h, int64_t end) const {
    const QueryChunk::Replay& replay = chunk.replay;
    const int32_t n_before = chunk.n_rows[h] - replay.n_own;  // of the prompt
    std::vector<int32_t> rows;
    for (int32_t i = 0; i < std::min(params_.sinks, replay.begin); ++i) rows.push_back(i);
    for (int32_t i = replay.begin; i < replay.end; ++i) rows.push_back(i);
    const auto n_own = static_cast<int32_t>(replay.n_own - (chunk.q.shape[0] - end));
    for (int32_t i = 0; i < n_own; ++i) rows.push_back(n_before + i);
    return rows;
  }

  /// Queries [begin, end) of the chunk, and KV head h.
  void add(const QueryChunk& chunk, int64_t h, int64_t begin, int64_t end) {
    const int64_t n_group = chunk.q.shape[1] / chunk.k.shape[0], n = end - begin;
    const int64_t head_dim = chunk.k.shape[2];
    const std::vector<int32_t> rows = rows_of(chunk, h, end);
    const auto n_rows = static_cast<int32_t>(rows.size());
    const Buffer index = backend_.allocate(n_rows * sizeof(int32_t), "rows");
    backend_.upload(index.data(), rows.data(), n_rows * sizeof(int32_t));
    const Buffer keys = backend_.allocate(n_rows * row_bytes(chunk.k.dtype, head_dim), "keys");
    void* const to = keys.data();
    ops::gather_rows(backend_, chunk.k.slice(h, h + 1), index.view(DType::i32, {1, n_rows}),
                     {&n_rows, 1}, {&to, 1});
    const Floats q(backend_, {n, n_group, head_dim}, "queries");
    for (int64_t i = 0; i < n; ++i) {
      backend_.copy(q.view.at<void>(i), chunk.q.at<const void>(begin + i, h * n_group),
                    n_group * head_dim * sizeof(float));
    }
    AttentionVariant variant = chunk.variant;
    if (variant.sinks) variant.sinks = variant.sinks.slice(h * n_group, (h + 1) * n_group);
    const Floats votes(backend_, {1, n_rows}, "votes");
    ops::window_votes(backend_, {.q = q,
                                 .k = keys.view(chunk.k.dtype, {1, n_rows, head_dim}),
                                 .n_rows = {&n_rows, 1},
                                 .scale = chunk.scale,
                                 .group = GroupReduce::max,
                                 .votes = votes,
                                 .variant = variant,
                                 .reduce = VoteReduce::max});
    take_larger(chunk, h, rows, votes);
  }

  void take_larger(const QueryChunk& chunk, int64_t h, const std::vector<int32_t>& rows,
                   const Tensor& votes) {
    const int32_t n_prompt = chunk.n_rows[h] - chunk.replay.n_own;
    const auto n = std::ranges::lower_bound(rows, n_prompt) - rows.begin();
    const Buffer storage = backend_.allocate_host(n * sizeof(float), "votes on the host");
    if (!backend_.computes()) return;
    const auto* const values = static_cast<const float*>(storage.data());
    backend_.download(storage.data(), votes.at<const void>(0), n * sizeof(float));
    float* const best = best_.at<float>(h);
    for (int64_t i = 0; i < n; ++i) {
      if (!(values[i] <= best[rows[i]])) best[rows[i]] = values[i];  // a NaN stays
    }
  }

  Backend& backend_;
  const PolicyInfo& info_;
  const KvzipParams& params_;
  Buffer storage_;  // on the host
  Tensor best_;     // [n_head_kv, rows] f32
};

class KvzipPolicy final : public RowPolicy {
 public:
  using Params = KvzipParams;
  KvzipPolicy(const PolicyInfo& info, const PolicyConfig& config, const Params& params)
      : RowPolicy(info, config, params), params_(params) {}
  std::unique_ptr<LayerSelector> make_selector(Backend& backend) const override {
    return std::make_unique<KvzipSelector>(backend, info(), params_);
  }

 private:
  const Params params_;
};

}  // namespace

PolicyDefinition kvzip_policy() {
  return define_policy<KvzipPolicy>(
      {.name = "kvzip",
       .score = "strongest attention of any query as the model repeats the text; all layers and "
                "heads share the rows",
       .paper = "2505.23416",
       .reads = "a second reading, keys",
       .observes = true,
       .shares_layers = true,
       .replays = true},
      join<KvzipParams>(row_fields()));
}

}  // namespace snapkv
