// SPDX-License-Identifier: MIT
// Recompresses one layer at a time: the policy sees the layer's rows, or all of the conversation's,
// and the queries of its last tokens; the rows it keeps move to a smaller layer, and the larger one
// is freed.
#include "engine/decode/recompress.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/timer.h"
#include "cache/recurrent_state.h"
#include "engine/core/layer_budget.h"
#include "engine/core/select_rows.h"

namespace snapkv {
namespace {

int64_t budget_of(const Session::Impl& s, int il) {
  return layer_budget(s.architecture().spec(), *s.policy, s.n_past, il);
}

Selection select_again(Session::Impl& s, int il, const RowState& rows) {
  // the window is the last rows of every head, and at least one row must come before it
  const std::vector<int32_t> n = rows.n_rows();
  const int64_t fewest = *std::min_element(n.begin(), n.end());
  const int64_t n_window = std::min(s.queries.size(), fewest - 1);
  if (n_window < 1) {  // happens only with a saved session made by hand
    fail(
        ErrorCode::kRuntime,
        "layer {} cannot be compressed again: a head has {} rows and {} queries of the last tokens "
        "are known, at least 2 rows and a query are needed",
        il, fewest, s.queries.size());
  }
  const LayerSpec& layer = s.architecture().layer_spec(il);
  std::vector<Buffer> storage;
  std::vector<Tensor> q_windows;
  for (const int reader : s.architecture().spec().readers(il)) {
    storage.push_back(s.queries.last(s.backend(), reader, n_window));
    q_windows.push_back(
        storage.back().view(DType::f32, {n_window, layer.n_head, layer.state.head_dim_k}));
  }
  const auto selector = s.policy->make_selector(s.backend());
  if (rows.has_views()) {
    return select_rows(s, il, rows, q_windows, *selector, budget_of(s, il));
  }
  const auto copy = readable_copy(s, il, rows);
  return select_rows(s, il, *copy, q_windows, *selector, budget_of(s, il));
}

}  // namespace

int64_t steps_to_limit(const Session::Impl& s, int il) {
  if (!s.queries || !s.architecture().layer_spec(il).compressed) {
    return std::numeric_limits<int64_t>::max();
  }
  const std::vector<int32_t> n_rows = s.layers[il]->rows().n_rows();
  // budgets differ between layers and heads; decoding adds the same number to all of them
  const int64_t tail = s.options.kv_decode_limit - s.policy->budget_for(s.n_past);
  const int64_t most = (budget_of(s, il) + tail) * std::ssize(n_rows);
  const int64_t rows = std::accumulate(n_rows.begin(), n_rows.end(), int64_t{0});
  return std::max<int64_t>(0, (most - rows) / std::ssize(n_rows));
}

void recompress_at_limit(Session::Impl& s) {
  if (!s.queries) return;
  const Timer timer;
  bool any = false;
  for (int il = 0; il < std::ssize(s.layers); ++il) {
    if (steps_to_limit(s, il) > 0) continue;
    if (!any) vote_pending(s);  // before their rows may be gone
    any = true;
    s.remember(il);
    const RowState& rows = s.has_history(il) ? *s.history[il] : s.layers[il]->rows();
    const Selection selection = select_again(s, il, rows);
    const int64_t tail = s.options.kv_decode_limit - s.policy->budget_for(s.n_past);
    const int64_t reserve = std::min(s.options.decode_reserve, tail);
    auto kept = make_state(s.architecture().layer_spec(il).state, s.meter, s.options.kv_type);
    kept->rows().keep(s.backend(), rows, selection, static_cast<int32_t>(reserve));
    if (RecurrentState* beside = kept->as_recurrent()) {
      beside->take(*s.layers[il]->as_recurrent());
    }
    s.layers[il] = std::move(kept);
    if (!s.has_history(il)) continue;
    s.in_history[il] = s.layers[il]->rows().n_rows();
    s.history[il]->leave();
  }
  if (!any) return;
  s.stats.n_recompressed += 1;
  s.stats.recompress_seconds += timer.seconds();
}

}  // namespace snapkv
