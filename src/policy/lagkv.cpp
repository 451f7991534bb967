// SPDX-License-Identifier: MIT
// Policy "lagkv" (Liang et al., arXiv 2504.04704): keeps rows that stand out from the rows that
// follow. After the sinks the rows are cut into chunks of lag_size. Keys and values of a chunk are
// measured relative to each channel's range in the next chunk, and with d = their standard
// deviation over the channels
//   score[j] = rank within the chunk of softmax_j(d of keys) + softmax_j(d of values)
// so that every chunk keeps the same number of rows. Rows without a complete chunk after them, the
// last chunk and the remainder, are kept before all others, most recent first; a budget no larger
// than that part keeps only recent rows. The paper and kvpress' LagKVPress keep all of it. Reads no
// queries.
#include <algorithm>

#include "base/error.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

struct LagKvParams : RowParams {
  LagKvParams() { sinks = 4; }
  int lag_size = 128;
};

class LagKvSelector final : public Selector<LagKvParams> {
 public:
  using Selector::Selector;

 private:
  void score(const ScoreInput& input, const Tensor& scores) override {
    if (!input.v) fail(ErrorCode::kUsage, "policy \"{}\" needs the values, v", info().name);
    const int64_t n_head_kv = scores.shape[0], begin = params().sinks, lag = params().lag_size;
    const int64_t most = *std::max_element(input.n_rows.begin(), input.n_rows.end());
    const Floats deviations(backend(), {n_head_kv, most}, "deviations");
    const Floats sums(backend(), {n_head_kv, most}, "scores of keys and values");
    ChunkScores chunks{.kind = ChunkScore::softmax,
                       .scores = deviations,
                       .n = input.n_rows,
                       .begin = begin,
                       .length = lag,
                       .out = sums};
    ops::lag_deviations(backend(), input.k, input.n_rows, begin, lag, deviations);
    ops::chunk_scores(backend(), chunks);
    ops::lag_deviations(backend(), input.v, input.n_rows, begin, lag, deviations);
    chunks.accumulate = true;
    ops::chunk_scores(backend(), chunks);
    ops::chunk_scores(backend(), {.kind = ChunkScore::rank,
                                  .scores = sums,
                                  .n = input.n_rows,
                                  .begin = begin,
                                  .length = lag,
                                  .out = deviations});
    for (int64_t h = 0; h < n_head_kv; ++h) {
      backend().copy(scores.at<void>(h), deviations.view.at<void>(h),
                     input.n_prefix[h] * sizeof(float));
      prefer_recent(input, h, scores);
    }
  }

  /// Writes scores above every rank for the rows that have no complete chunk after them.
  void prefer_recent(const ScoreInput& input, int64_t h, const Tensor& scores) const {
    const int64_t begin = params().sinks, lag = params().lag_size;
    const int64_t n_chunks = std::max<int64_t>(0, input.n_rows[h] - begin) / lag;
    const int64_t first = begin + std::max<int64_t>(0, n_chunks - 1) * lag;
    const int64_t n_recent = std::max<int64_t>(0, input.n_prefix[h] - first);
    // ranks are below lag; there are none if no chunk has a complete one after it
    write_rising_scores(scores, h, first, n_recent, n_chunks > 1 ? static_cast<float>(lag) : 1.0f);
  }
};

}  // namespace

PolicyDefinition lagkv_policy() {
  return define_policy<ScorePolicy<LagKvSelector>>(
      {.name = "lagkv",
       .score = "rank within a run of rows of the spread of key and value, in the next run's range",
       .paper = "2504.04704",
       .reads = "keys, values"},
      join<LagKvParams>(
          row_fields(),
          Fields<LagKvParams>{
              field(&LagKvParams::lag_size,
                    {.name = "lag_size",
                     .help = "Rows that are ranked together, in the range of as many later ones",
                     .least = 1})}));
}

}  // namespace snapkv
