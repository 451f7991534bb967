// SPDX-License-Identifier: MIT
#include "engine/core/layer_budget.h"

namespace snapkv {

int64_t layer_budget(const ModelSpec& spec, const Policy& policy, int64_t n_tokens, int il) {
  const LayerSpec& layer = spec.layers[il];
  if (!layer.compressed) return layer.visible_rows(n_tokens);
  return policy.layer_budget(n_tokens, layer.place.il, layer.place.n_layer);
}

}  // namespace snapkv
