// SPDX-License-Identifier: MIT
// What ops along sequences share.
#pragma once

#include <cstddef>
#include <span>

#include "backend/ops.h"

namespace snapkv::cuda {

/// How many of the first entries can run at the same time: up to one that goes on from the state of
/// the one before it.
inline size_t count_independent(std::span<const SequenceRows> sequences) {
  size_t n = 1;
  while (n < sequences.size() && sequences[n].from != sequences[n - 1].to) ++n;
  return n;
}

}  // namespace snapkv::cuda
