// SPDX-License-Identifier: MIT
// Policy "chunkkv" (Liu et al., arXiv 2502.00299): runs of chunk_length rows are kept or dropped
// together, so that phrases stay whole. A chunk's score is the mean of SnapKV's votes over its rows
// (not pooled: the chunk does that); the last chunk before the window may be shorter. The budget is
// met exactly, so only the first rows of the last chosen chunk may be kept. Chunks are chosen per
// KV head. The paper's reuse of indices from layer to layer only saves time and is left out.
#include "policy/policy_registry.h"
#include "policy/votes.h"

namespace snapkv {
namespace {

struct ChunkKvParams : RowParams, GroupParams {
  int chunk_length = 20;
};

class ChunkKvSelector final : public Selector<ChunkKvParams> {
 public:
  using Selector::Selector;

 private:
  // Every row gets its chunk's score; ties go to the lower row, so chunks stay together.
  void score(const ScoreInput& input, const Tensor& scores) override {
    window_votes(backend(), input, params().group, scores);
    ops::chunk_scores(backend(), {.kind = ChunkScore::mean,
                                  .scores = scores,
                                  .n = input.n_prefix,
                                  .length = params().chunk_length,
                                  .out = scores});
  }
};

}  // namespace

PolicyDefinition chunkkv_policy() {
  return define_policy<ScorePolicy<ChunkKvSelector>>(
      {.name = "chunkkv",
       .score = "mean of the unpooled votes over runs of rows",
       .paper = "2502.00299",
       .reads = "window, keys"},
      join<ChunkKvParams>(
          row_fields(),
          Fields<ChunkKvParams>{
              field(&ChunkKvParams::chunk_length,
                    {.name = "chunk_length", .help = "Rows kept or dropped together", .least = 1})},
          group_fields()));
}

}  // namespace snapkv
