// SPDX-License-Identifier: MIT
#include "eval/inspect/attention.h"

#include <algorithm>

#include "base/error.h"

namespace snapkv::eval {
namespace {

constexpr int64_t kTokens = 64;        // the last tokens of the window, each with its own spotlight
constexpr int64_t kStretches = 7;      // stretches before the window, at even distances
constexpr int64_t kLayers = 128;       // layers with their own spotlight of the window, evenly
constexpr int64_t kTop = 1024;         // single positions in a spotlight
constexpr int64_t kTopOfLayers = 256;  // the same for a layer's spotlight: there are many

}  // namespace

AttentionGatherer::AttentionGatherer(const ModelInfo& info, const PolicyConfig& policy,
                                     const Columns& columns, const Rows& rows,
                                     const std::vector<AttentionProbe::Range>& chosen)
    : n_layer_(info.n_layer),
      n_attending_(std::count_if(
          info.layers.begin(), info.layers.end(),
          [](const LayerInfo& layer) { return layer.attention != AttentionKind::none; })),
      model_layers_(info.layers),
      columns_(columns),
      window_(std::min<int64_t>(policy_window(policy), columns.n_tokens)),
      scores_(rows, columns) {
  const int64_t n = columns.n_tokens;
  add_group("window", n - window_, n);
  for (const AttentionProbe::Range& range : chosen) {
    if (range.begin < 0 || range.begin >= range.end || range.end > n) {
      fail(ErrorCode::kUsage, "spotlight {}-{}: the prompt has tokens 0 to {}", range.begin,
           range.end - 1, n - 1);
    }
    add_group("chosen", range.begin, range.end);
  }
  for (int64_t i = std::max<int64_t>(0, n - std::min(window_, kTokens)); i < n; ++i) {
    add_group("token", i, i + 1);
  }
  if (n < 4 * kStretches * window_) return;  // too short for meaningful stretches
  for (int64_t k = 1; k <= kStretches; ++k) {
    const int64_t end = k * n / (kStretches + 1);
    add_group("stretch", end - window_, end);
  }
}

void AttentionGatherer::add_group(const char* name, int64_t begin, int64_t end) {
  groups_.push_back(
      {name, {begin, end}, std::vector<double>(static_cast<size_t>(columns_.n_tokens), 0)});
}

AttentionProbe AttentionGatherer::probe() {
  AttentionProbe probe;
  for (const Group& group : groups_) probe.ranges.push_back(group.range);
  probe.report = [this](const AttentionProbe::Report& report) { add(report); };
  return probe;
}

void AttentionGatherer::add(const AttentionProbe::Report& report) {
  Group& group = groups_[report.range];
  const bool window = report.range == 0;
  const double n_queries = static_cast<double>(group.range.end - group.range.begin);
  const auto n_keys = static_cast<size_t>(report.n_keys);
  const LayerInfo& attention = model_layers_[static_cast<size_t>(report.il)];
  const int64_t n_group = attention.n_head / attention.n_head_kv;
  std::vector<double> layer(group.shares.size(), 0);  // mean over all query heads
  std::vector<double> head(group.shares.size(), 0);   // mean over the heads of one KV head
  for (int64_t h = 0; h < report.n_head; ++h) {
    const auto sums = report.sums.subspan(static_cast<size_t>(h) * n_keys, n_keys);
    if (h % n_group == 0) std::fill(head.begin(), head.end(), 0.0);
    for (size_t j = 0; j < n_keys; ++j) {
      const double share = sums[j] / n_queries;
      head[j] += share / static_cast<double>(n_group);
      layer[j] += share / static_cast<double>(report.n_head);
    }
    if (window && (h + 1) % n_group == 0) scores_.add(report.il, h / n_group, head);
  }
  for (size_t j = 0; j < n_keys; ++j) group.shares[j] += layer[j];
  const int64_t step = (n_layer_ + kLayers - 1) / kLayers;
  if (window && report.il % step == 0) {
    layers_.push_back(spotlight("layer", report.il, group.range, layer, kTopOfLayers));
  }
}

Json AttentionGatherer::spotlight(const char* name, int64_t layer,
                                  const AttentionProbe::Range& range,
                                  std::span<const double> shares, int64_t n_top) const {
  Json json = {{"group", name}, {"layer", layer}, {"begin", range.begin}, {"end", range.end}};
  json.update(sparse_shares(columns_, shares, n_top));
  return json;
}

Json AttentionGatherer::spotlights_json() const {
  Json json = Json::array();
  for (const Group& group : groups_) {
    std::vector<double> mean = group.shares;
    for (double& share : mean) share /= static_cast<double>(n_attending_);
    json.push_back(spotlight(group.name, -1, group.range, mean, kTop));
    if (&group != &groups_.front()) continue;
    for (const Json& layer : layers_) json.push_back(layer);
  }
  return json;
}

}  // namespace snapkv::eval
