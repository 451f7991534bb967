// SPDX-License-Identifier: MIT
// check_tensors(): looks for values that are not finite (infinities, NaNs) in a model's weights, at
// the speed of reading memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "format/gguf.h"

namespace snapkv {

/// Index, counted over all of the tensor's values, of the first one that is not finite; nullopt if
/// all are. For a block type, the first value of the first block with a scale that is not finite.
/// `t` is contiguous.
std::optional<int64_t> first_non_finite(const Tensor& t);

/// Reads every tensor of `file` with `n_threads` threads. Throws Error{kBadModel} naming the first
/// tensor, in the file's order, with a value that is not finite, and the value's position. The
/// calling thread calls `report` with the fraction that is done; if it throws, the call ends.
void check_tensors(const GgufFile& file, int n_threads, const std::function<void(double)>& report);

}  // namespace snapkv
