// SPDX-License-Identifier: MIT
#include "engine/core/select_rows.h"

#include <algorithm>

#include "engine/core/kv_types.h"

namespace snapkv {

std::unique_ptr<RowState> readable_copy(Session::Impl& session, int il, const RowState& rows) {
  auto copy = make_full_state(session.architecture().layer_spec(il).state, session.meter,
                              scratch_dtype(session.options.kv_type));
  const int32_t most = rows.most_rows();
  copy->reserve(session.backend(), most, most);
  copy->append(session.backend(), rows);
  return copy;
}

Selection select_rows(Session::Impl& session, int il, const RowState& rows, const Tensor& q_window,
                      LayerSelector& selector, int64_t budget) {
  const Architecture& architecture = session.architecture();
  const LayerSpec& layer = architecture.layer_spec(il);
  const std::vector<int32_t> n_rows = rows.n_rows();
  if (std::all_of(n_rows.begin(), n_rows.end(), [&](int32_t n) { return n <= budget; })) {
    Selection all;
    all.keep_all = true;
    return all;
  }
  PolicyInput input;
  input.il = layer.place.il;
  input.n_layer = layer.place.n_layer;
  input.q_window = q_window;
  const RowState::Views views = rows.views();
  input.k = views.k;
  input.v = views.v;
  input.n_rows = n_rows;
  input.scale = layer.scale;
  input.variant = architecture.variant(il);
  input.rope = architecture.rotation(il, session.n_ctx);
  input.wo = architecture.attention_output(il).w;
  input.value_heads = architecture.value_heads(il);
  return selector.select(input, budget);
}

}  // namespace snapkv
