// SPDX-License-Identifier: MIT
// What the edits of a tensor (gguf_mapping.h) take of it: its shape in GGUF, and where the values
// are.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "huggingface/config.h"
#include "huggingface/gguf_mapping.h"
#include "huggingface/mapped_tensor.h"

namespace snapkv::huggingface {

/// The half of the rows that the edit names; all of them for others.
Tensor half_of(const Tensor& t, Edit edit);

/// The shape in GGUF of what is taken from a tensor of layer il.
std::vector<int64_t> gguf_shape(const Config& config, int64_t il, std::vector<int64_t> shape,
                                Edit edit);

/// Whether strides_of() says where the values of GGUF's tensor are.
bool is_strided(Edit edit);

/// Where the values of a tensor of this shape are that is transposed, taken apart, or both.
Strides strides_of(const Config& config, const std::vector<int64_t>& shape, Edit edit);

}  // namespace snapkv::huggingface
