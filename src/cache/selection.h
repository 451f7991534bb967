// SPDX-License-Identifier: MIT
// Selection: the rows of one layer that a policy keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

/// Kept rows of one layer, per KV head; their numbers may differ between heads.
struct Selection {
  bool keep_all = false;        // every row of every head; `rows` is then empty
  std::vector<int32_t> n_kept;  // [n_head_kv]
  Tensor rows;                  // [n_head_kv, max(n_kept)] i32, ascending; device memory
  Buffer storage;               // owns `rows`
};

}  // namespace snapkv
