// SPDX-License-Identifier: MIT
// Asks a session's policy which rows of a layer to keep, at the end of a prompt and when decoding
// reaches its limit.
#pragma once

#include <span>

#include "engine/core/session_impl.h"

namespace snapkv {

/// A copy of rows of layer il that a policy can read (RowState::has_views): every head has the
/// same capacity, and a quantized cache is converted to f16.
std::unique_ptr<RowState> readable_copy(Session::Impl& session, int il, const RowState& rows);

/// `rows` are all rows of layer il so far, of a type that is not quantized and with the same
/// capacity in every head. `q_windows`: of each layer that sees them (ModelSpec::readers), the
/// queries of the last n_window tokens, [n_window, n_head, head_dim] f32, or empty if the policy
/// has no window. `selector` is the policy's selector for this layer; if the policy
/// observes, it has seen the layer's queries. `budget` comes from the policy's layer_budget().
Selection select_rows(Session::Impl& session, int il, const RowState& rows,
                      std::span<const Tensor> q_windows, LayerSelector& selector, int64_t budget);
/// The same for a policy whose layers share the budget (LayerSelector::score_rows).
RowScores score_rows(Session::Impl& session, int il, const RowState& rows,
                     std::span<const Tensor> q_windows, LayerSelector& selector);

}  // namespace snapkv
