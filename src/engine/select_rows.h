// SPDX-License-Identifier: MIT
// Asks a session's policy which rows of a layer stay: at the end of a prompt (prefill_target.cpp)
// and when decoding reaches its limit (recompress.cpp).
#pragma once

#include "engine/session_impl.h"

namespace snapkv {

/// `rows`: all rows of layer il so far, every head with the same room, of a plain type. `q_window`:
/// queries of its last rows, [n_window, n_head, head_dim] f32. `selector`: the policy's, of this
/// layer, which has seen the layer's queries if the policy observes. `budget`: of the policy's
/// layer_budget().
Selection select_rows(Session::Impl& session, int il, const KvLayer& rows, const Tensor& q_window,
                      LayerSelector& selector, int64_t budget);

}  // namespace snapkv
