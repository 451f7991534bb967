// SPDX-License-Identifier: MIT
#include "engine/prefill/layer_ranking.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engine/core/layer_budget.h"

namespace snapkv {

LayerRanking::LayerRanking(Backend& backend, const ModelSpec& spec, const Policy& policy,
                           int64_t n_tokens)
    : backend_(backend), spec_(spec), policy_(policy), n_tokens_(n_tokens) {
  for (int il = 0; il < std::ssize(spec.layers); ++il) {
    const LayerSpec& layer = spec.layers[il];
    if (!layer.compressed || !layer.state.has_rows()) continue;
    const int64_t rows = layer.state.n_head * layer_budget(spec, policy, n_tokens, il);
    Group& group = groups_[row_bytes(layer.state)];
    // In a dry run the other layers of each kind are missing.
    group.budget = backend.computes() ? group.budget + rows
                                      : std::max(group.budget, rows * layer.place.n_layer);
  }
}

int64_t LayerRanking::row_bytes(const StateShape& shape) {
  return static_cast<int64_t>(shape.bytes_per_token(DType::f32)) / shape.n_head;
}

int64_t LayerRanking::most_rows(int il) const {
  const StateShape& shape = spec_.layers[il].state;
  return std::min(shape.n_head * n_tokens_, groups_.at(row_bytes(shape)).budget);
}

int64_t LayerRanking::Group::n_rows() const {
  int64_t n = 0;
  for (const auto& [il, scores] : layers) {
    n += std::accumulate(scores.n_rows.begin(), scores.n_rows.end(), int64_t{0});
  }
  return n;
}

std::vector<LayerRanking::Change> LayerRanking::add(int il, RowScores scores) {
  Group& group = groups_.at(row_bytes(spec_.layers[il].state));
  if (!backend_.computes()) return add_dry(il, scores, group);
  group.layers[il] = std::move(scores);
  const int64_t n = group.n_rows();
  std::vector<Change> changes;
  if (n <= group.budget) return changes;

  const Buffer storage = backend_.allocate_host(n * sizeof(float), "scores of all layers");
  auto* const all = static_cast<float*>(storage.data());
  float* end = all;
  for (const auto& [layer, of_layer] : group.layers) {
    for (size_t h = 0; h < of_layer.n_rows.size(); ++h) {
      end = std::copy_n(of_layer.view.at<const float>(h), of_layer.n_rows[h], end);
    }
  }
  float* const last = all + group.budget - 1;
  std::nth_element(all, last, end, std::greater<>());
  const float least = *last;
  // so many of the rows that have just the least score are among the best
  int64_t n_least = group.budget - std::count_if(all, end, [&](float s) { return s > least; });
  for (auto& [layer, of_layer] : group.layers) {
    Selection selection = keep_best(of_layer, least, n_least);
    if (!selection.keep_all) changes.push_back({layer, std::move(selection)});
  }
  return changes;
}

/// Keeps the rows above the least score, and the first n_least of those that have it.
Selection LayerRanking::keep_best(RowScores& scores, float least, int64_t& n_least) const {
  std::vector<std::vector<int32_t>> kept(scores.n_rows.size());
  bool all = true;
  for (size_t h = 0; h < kept.size(); ++h) {
    float* const of_head = scores.view.at<float>(h);
    int32_t n = 0;
    for (int32_t i = 0; i < scores.n_rows[h]; ++i) {
      const float score = of_head[i];
      if (score < least || (score == least && n_least-- <= 0)) continue;
      kept[h].push_back(i);
      of_head[n++] = score;
    }
    all = all && n == scores.n_rows[h];
    scores.n_rows[h] = n;
  }
  if (!all) return make_selection(kept);
  Selection selection;
  selection.keep_all = true;
  return selection;
}

Selection LayerRanking::make_selection(const std::vector<std::vector<int32_t>>& kept) const {
  Selection selection;
  for (const std::vector<int32_t>& rows : kept) {
    selection.n_kept.push_back(static_cast<int32_t>(rows.size()));
  }
  allocate(selection);
  for (int64_t h = 0; h < std::ssize(kept); ++h) {
    backend_.upload(selection.rows.at<void>(h), kept[h].data(), kept[h].size() * sizeof(int32_t));
  }
  return selection;
}

/// Makes the memory for n_kept rows.
void LayerRanking::allocate(Selection& selection) const {
  const int64_t n_head = std::ssize(selection.n_kept);
  // Each head keeps its window.
  const int64_t most = *std::max_element(selection.n_kept.begin(), selection.n_kept.end());
  selection.storage = backend_.allocate(n_head * most * sizeof(int32_t), "selection");
  selection.rows = selection.storage.view(DType::i32, {n_head, most});
}

std::vector<LayerRanking::Change> LayerRanking::add_dry(int il, const RowScores& scores,
                                                        const Group& group) const {
  const int64_t n = std::accumulate(scores.n_rows.begin(), scores.n_rows.end(), int64_t{0});
  const Buffer all =
      backend_.allocate_host((2 * group.budget + n) * sizeof(float), "scores of all layers");
  const int64_t budget = layer_budget(spec_, policy_, n_tokens_, il);
  Selection selection;
  for (const int32_t rows : scores.n_rows) {
    selection.n_kept.push_back(static_cast<int32_t>(std::min<int64_t>(rows, budget)));
  }
  allocate(selection);
  std::vector<Change> changes;
  changes.push_back({il, std::move(selection)});
  return changes;
}

}  // namespace snapkv
