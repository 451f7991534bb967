// SPDX-License-Identifier: MIT
// Selection: which rows of one layer a policy keeps. Made by src/policy, used by src/cache to
// gather.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "base/tensor.h"

namespace snapkv {

/// Kept rows of one layer, per KV head; counts may differ from head to head.
struct Selection {
  bool keep_all = false;        // every row of every head; `rows` is then empty
  std::vector<int32_t> n_kept;  // [n_head_kv]
  Tensor rows;                  // [n_head_kv, max(n_kept)] i32, ascending; device memory
  Buffer storage;               // owns `rows`
};

}  // namespace snapkv
