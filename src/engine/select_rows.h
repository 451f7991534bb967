// SPDX-License-Identifier: MIT
// Asks a session's policy which rows of a layer stay: at the end of a prompt (prefill_target.cpp)
// and when decoding reaches its limit (recompress.cpp).
#pragma once

#include "engine/session_impl.h"

namespace snapkv {

/// `rows` are all rows of layer il so far, of a plain type and with the same room in every head;
/// `q_window` [n_window, n_head, head_dim] f32 are the queries of its last rows. `selector` is the
/// policy's selector for this layer, which has seen the layer's queries if the policy observes, and
/// `budget` comes from the policy's layer_budget().
Selection select_rows(Session::Impl& session, int il, const KvLayer& rows, const Tensor& q_window,
                      LayerSelector& selector, int64_t budget);

}  // namespace snapkv
