// SPDX-License-Identifier: MIT
// Policy "chunkkv" (Liu et al., arXiv 2502.00299): runs of chunk_length rows are kept or dropped
// together, so that phrases stay whole. A chunk's score is the mean of SnapKV's votes (not pooled:
// the chunk does that) over its rows; the last chunk before the window may be shorter. The budget
// is met exactly: of the last chunk that is chosen, only the first rows may fit. Per KV head; the
// paper's reuse of indices from layer to layer saves time only and is left out. Made by the
// registry.
#include <algorithm>
#include <memory>
#include <numeric>

#include "backend/ops.h"
#include "policy/host_rows.h"
#include "policy/policy_registry.h"
#include "policy/score_policy.h"

namespace snapkv {
namespace {

class ChunkKvPolicy final : public ScorePolicy {
 public:
  explicit ChunkKvPolicy(const PolicyConfig& config) : ScorePolicy(config) {}

 private:
  // Every row gets its chunk's score; equal scores go to the lower row, so chunks stay together.
  void score(Backend& backend, const PolicyInput& input, std::span<const int32_t> n_prefix,
             const Tensor& scores) const override {
    ops::window_votes(backend, {.q = input.q_window,
                                .k = input.k,
                                .n_rows = input.n_rows,
                                .scale = input.scale,
                                .group = config().group,
                                .votes = scores,
                                .variant = input.variant});
    const size_t length = static_cast<size_t>(config().chunk_length);
    for (size_t h = 0; h < n_prefix.size(); ++h) {
      std::vector<float> row = read_scores(backend, scores, static_cast<int64_t>(h), n_prefix[h]);
      for (size_t begin = 0; begin < row.size(); begin += length) {
        const auto first = row.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = first + static_cast<std::ptrdiff_t>(std::min(length, row.size() - begin));
        const double sum = std::accumulate(first, last, 0.0);
        std::fill(first, last, static_cast<float>(sum / static_cast<double>(last - first)));
      }
      write_scores(backend, scores, static_cast<int64_t>(h), row);
    }
  }
};

}  // namespace

std::unique_ptr<Policy> make_chunkkv(const PolicyConfig& config) {
  return std::make_unique<ChunkKvPolicy>(config);
}

}  // namespace snapkv
