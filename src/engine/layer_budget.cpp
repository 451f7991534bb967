// SPDX-License-Identifier: MIT
#include "engine/layer_budget.h"

namespace snapkv {

PolicyLayer policy_layer(const ModelSpec& spec, int il) {
  PolicyLayer place;
  for (int i = 0; i < std::ssize(spec.layers); ++i) {
    if (!spec.layers[i].compressed) continue;
    if (i < il) ++place.il;
    ++place.n_layer;
  }
  return place;
}

int64_t layer_budget(const ModelSpec& spec, const Policy& policy, int64_t n_tokens, int il) {
  const LayerSpec& layer = spec.layers[il];
  if (!layer.compressed) return layer.visible_rows(n_tokens);
  const PolicyLayer place = policy_layer(spec, il);
  return policy.layer_budget(n_tokens, place.il, place.n_layer);
}

}  // namespace snapkv
