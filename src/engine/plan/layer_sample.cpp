// SPDX-License-Identifier: MIT
#include "engine/plan/layer_sample.h"

#include <algorithm>

namespace snapkv {
namespace {

/// Whether layer il takes memory that depends on other layers: if they see its rows, or if it sees
/// theirs and its queries wait for the last of these layers.
bool is_alone(const ModelSpec& spec, int il) {
  const int rows_of = spec.rows_of(il);
  return rows_of == il ? spec.readers(il).size() > 1 : spec.layers[rows_of].compressed;
}

}  // namespace

LayerSample::LayerSample(const Architecture& whole,
                         const std::function<std::vector<int64_t>(int il)>& kept)
    : whole_(whole) {
  const ModelSpec& spec = whole.spec();
  const int n_layer = static_cast<int>(spec.config.n_layer);
  for (int il = 0; il < n_layer; ++il) {
    Layer layer{.il = il, .kept = kept(il)};
    const bool alone = il + 1 == n_layer || is_alone(spec, il);
    const auto like = std::find_if(layers_.begin(), layers_.end(), [&](const Layer& other) {
      return !alone && !is_alone(spec, other.il) &&
             whole.layer_kind(other.il) == whole.layer_kind(il) && other.kept == layer.kept;
    });
    if (like != layers_.end()) {
      ++like->count;
    } else {
      layers_.push_back(std::move(layer));
    }
  }
  spec_.family = spec.family;
  spec_.config = spec.config;
  spec_.config.n_layer = std::ssize(layers_);
  spec_.compute = spec.compute;
  for (const Layer& layer : layers_) {
    spec_.layers.push_back(spec.layers[layer.il]);
    int& source = spec_.layers.back().source;
    for (int i = 0; i < std::ssize(layers_) && source >= 0; ++i) {
      if (layers_[i].il != source) continue;
      source = i;
      break;
    }
  }
}

void LayerSample::embed(std::span<const int32_t> tokens, const LayerPass& pass) const {
  LayerPass at_start = pass;  // a plan's prompt may be longer than the positions that were learned
  const std::vector<int32_t> pos(pass.pos.size(), 0);
  if (config().n_positions > 0) at_start.pos = pos;
  whole_.embed(tokens, at_start);
}

}  // namespace snapkv
