// SPDX-License-Identifier: MIT
// Recompresses one layer at a time: the policy sees the layer's rows and the queries of its last
// tokens, the rows it keeps move to a smaller layer, and the larger one is freed.
#include "engine/recompress.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/timer.h"
#include "engine/layer_budget.h"
#include "engine/memory_plan.h"
#include "engine/select_rows.h"

namespace snapkv {
namespace {

int64_t budget_of(const Session::Impl& s, int il) {
  return layer_budget(s.architecture().spec(), *s.policy, s.n_past, il);
}

/// A copy of `layer` that a policy can read: every head has the same capacity, and a quantized
/// cache is converted to f16.
KvLayer readable_copy(Session::Impl& s, const KvLayer& layer) {
  const std::vector<int32_t> n = layer.n_kv();
  const std::vector<int32_t> capacity(n.size(), *std::max_element(n.begin(), n.end()));
  KvLayer copy(s.backend(), s.meter, s.info().head_dim, scratch_dtype(layer.dtype()), capacity);
  copy.append(s.backend(), layer);
  return copy;
}

Selection select_again(Session::Impl& s, int il, const KvLayer& layer) {
  // the window is the last rows of every head, and at least one row must come before it
  const std::vector<int32_t> n = layer.n_kv();
  const int64_t fewest = *std::min_element(n.begin(), n.end());
  const int64_t n_window = std::min(s.queries.size(), fewest - 1);
  if (n_window < 1) {  // happens only with a saved session made by hand
    fail(
        ErrorCode::kRuntime,
        "layer {} cannot be compressed again: a head has {} rows and {} queries of the last tokens "
        "are known, at least 2 rows and a query are needed",
        il, fewest, s.queries.size());
  }
  const ModelConfig& config = s.architecture().config();
  const Buffer q = s.queries.last(s.backend(), il, n_window);
  const Tensor q_window = q.view(DType::f32, {n_window, config.n_head, config.head_dim});
  const auto selector = s.policy->make_selector(s.backend());
  if (layer.has_views()) {
    return select_rows(s, il, layer, q_window, *selector, budget_of(s, il));
  }
  const KvLayer copy = readable_copy(s, layer);
  return select_rows(s, il, copy, q_window, *selector, budget_of(s, il));
}

}  // namespace

int64_t steps_to_limit(const Session::Impl& s, int il) {
  if (!s.queries || !s.architecture().layer_spec(il).compressed) {
    return std::numeric_limits<int64_t>::max();
  }
  const KvLayer& layer = s.layers[il];
  // budgets differ between layers and heads; decoding adds the same number to all of them
  const int64_t tail = s.options.kv_decode_limit - s.policy->budget_for(s.n_past);
  const int64_t most = (budget_of(s, il) + tail) * layer.n_head_kv();
  int64_t rows = 0;
  for (int h = 0; h < layer.n_head_kv(); ++h) rows += layer.n_kv(h);
  return std::max<int64_t>(0, (most - rows) / layer.n_head_kv());
}

void recompress_at_limit(Session::Impl& s) {
  if (!s.queries) return;
  const Timer timer;
  bool any = false;
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    if (steps_to_limit(s, il) > 0) continue;
    any = true;
    s.remember(il);
    KvLayer& layer = s.layers[il];
    const Selection selection = select_again(s, il, layer);
    const int64_t tail = s.options.kv_decode_limit - s.policy->budget_for(s.n_past);
    const int64_t reserve = std::min(s.options.decode_reserve, tail);
    layer =
        layer.gather(s.backend(), s.meter, selection, static_cast<int32_t>(reserve), layer.dtype());
    if (s.history.has_layer(il)) s.in_history[il] = layer.n_kv();
  }
  if (!any) return;
  s.stats.n_recompressed += 1;
  s.stats.recompress_seconds += timer.seconds();
}

}  // namespace snapkv
