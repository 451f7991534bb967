// SPDX-License-Identifier: MIT
// check_tensors(): looks for values that are not finite (infinities, NaNs) among a model's weights,
// at the speed at which memory is read. Used by Model::load() where ModelOptions asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "format/gguf.h"

namespace snapkv {

/// Index, counted over all of the tensor's values, of the first one that is not finite; nullopt
/// when all are. Of a block type the first value of the first block with a scale that is not
/// finite. `t` is contiguous.
std::optional<int64_t> first_non_finite(const Tensor& t);

/// Reads every tensor of `file`, with `n_threads` threads. Throws Error{kBadModel} naming the first
/// tensor with a value that is not finite, in the file's order, and where in it that value is.
/// `report` is called by the calling thread with the fraction that is done; what it throws ends the
/// call.
void check_tensors(const GgufFile& file, int n_threads, const std::function<void(double)>& report);

}  // namespace snapkv
