// SPDX-License-Identifier: MIT
#include "engine/core/select_rows.h"

#include <algorithm>
#include <vector>

#include "backend/ops.h"
#include "engine/core/kv_types.h"

namespace snapkv {
namespace {

/// The queries of several layers as those of one, as PolicyInput orders heads.
Buffer join_heads(Backend& backend, std::span<const Tensor> layers, int64_t n_head_kv) {
  const int64_t n = layers[0].shape[0], width = layers[0].shape[1] * layers[0].shape[2];
  const int64_t n_layer = std::ssize(layers);
  const auto groups = [&](const Tensor& q) {
    return q.reshaped({n * n_head_kv, width / n_head_kv});
  };
  std::vector<Tensor> parts;
  for (const Tensor& q : layers) parts.push_back(groups(q));
  Buffer joined = backend.allocate(n * n_layer * width * sizeof(float), "queries of the window");
  ops::join(backend, parts, joined.view(DType::f32, {n * n_head_kv, n_layer * width / n_head_kv}));
  return joined;
}

}  // namespace

std::unique_ptr<RowState> readable_copy(Session::Impl& session, int il, const RowState& rows) {
  auto copy = make_full_state(session.architecture().layer_spec(il).state, session.meter,
                              scratch_dtype(session.options.kv_type));
  const int32_t most = rows.most_rows();
  copy->reserve(session.backend(), most, most);
  copy->append(session.backend(), rows);
  return copy;
}

namespace {

/// What a policy sees of a layer, and the memory that it is in.
struct LayerInput {
  LayerInput(Session::Impl& session, int il, const RowState& rows,
             std::span<const Tensor> q_windows);
  LayerInput(const LayerInput&) = delete;
  LayerInput& operator=(const LayerInput&) = delete;

  const std::vector<int32_t> n_rows;
  std::vector<Tensor> wo;
  Buffer joined;
  PolicyInput input;
};

LayerInput::LayerInput(Session::Impl& session, int il, const RowState& rows,
                       std::span<const Tensor> q_windows)
    : n_rows(rows.n_rows()) {
  const Architecture& architecture = session.architecture();
  const LayerSpec& layer = architecture.layer_spec(il);
  const std::vector<int> readers = architecture.spec().readers(il);
  SNAPKV_CHECK(q_windows.size() == readers.size());
  input.il = layer.place.il;
  input.n_layer = layer.place.n_layer;
  input.q_window = q_windows[0];
  if (readers.size() > 1 && q_windows[0]) {
    const int64_t n_head = layer.n_head * std::ssize(readers);
    joined = join_heads(session.backend(), q_windows, layer.state.n_head);
    input.q_window =
        joined.view(DType::f32, {q_windows[0].shape[0], n_head, layer.state.head_dim_k});
  }
  for (const int reader : readers) wo.push_back(architecture.attention_output(reader).w);
  const RowState::Views views = rows.views();
  input.k = views.k;
  input.v = views.v;
  input.n_rows = n_rows;
  input.scale = layer.scale;
  input.variant = architecture.variant(il);
  input.rope = architecture.rotation(il, session.n_ctx);
  input.wo = wo;
  input.value_heads = architecture.value_heads(il);
}

}  // namespace

Selection select_rows(Session::Impl& session, int il, const RowState& rows,
                      std::span<const Tensor> q_windows, LayerSelector& selector, int64_t budget) {
  const std::vector<int32_t> n_rows = rows.n_rows();
  if (std::all_of(n_rows.begin(), n_rows.end(), [&](int32_t n) { return n <= budget; })) {
    Selection all;
    all.keep_all = true;
    return all;
  }
  return selector.select(LayerInput(session, il, rows, q_windows).input, budget);
}

RowScores score_rows(Session::Impl& session, int il, const RowState& rows,
                     std::span<const Tensor> q_windows, LayerSelector& selector) {
  return selector.score_rows(LayerInput(session, il, rows, q_windows).input);
}

}  // namespace snapkv
