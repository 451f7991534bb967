// SPDX-License-Identifier: MIT
#include "engine/select_rows.h"

#include <algorithm>

namespace snapkv {

Selection select_rows(Session::Impl& session, int il, const KvLayer& rows, const Tensor& q_window,
                      LayerSelector& selector, int64_t budget) {
  const ModelConfig& config = session.architecture().config();
  const std::vector<int32_t> n_rows = rows.n_kv();
  if (std::all_of(n_rows.begin(), n_rows.end(), [&](int32_t n) { return n <= budget; })) {
    Selection all;
    all.keep_all = true;
    return all;
  }
  PolicyInput input;
  input.il = il;
  input.n_layer = static_cast<int>(config.n_layer);
  input.q_window = q_window;
  input.k = rows.k_view();
  input.v = rows.v_view();
  input.n_rows = n_rows;
  input.scale = config.attention_scale;
  input.rope = session.architecture().rope();
  input.wo = session.architecture().attention_output(il).w;
  return selector.select(input, budget);
}

}  // namespace snapkv
