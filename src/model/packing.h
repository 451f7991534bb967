// SPDX-License-Identifier: MIT
// When a prompt is computed with packed weights (linear_runner.h).
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/byte_products.h"
#include "snapkv/compute.h"
#include "snapkv/dtype.h"

namespace snapkv {

/// Prompts and turns of at least this many tokens are computed with packed weights; shorter ones
/// read the weights directly. It is 1 where the two ways round activations differently: what a
/// token computes must not depend on how many are read with it (docs/performance.md). Elsewhere it
/// is measured: packing takes about as long as reading the weights twice, and pays where the product
/// library is faster than the kernels that read the file's type. `file_type`: name of the model's
/// most frequent weight type.
/// `bytes`: Backend::byte_products().
int64_t packed_min_tokens(std::string_view file_type, DType compute, Device device,
                          ByteProducts bytes = ByteProducts::other);

/// Whether prompts of a model whose most frequent weight type is `file_type` are multiplied in 8
/// bits, whatever their length.
bool packed_products_in_bytes(ByteProducts bytes, std::string_view file_type);

/// Whether matrices are packed within each product, a piece at a time, which stays in the
/// processor's caches. This suits prompts of few chunks; longer ones pack each matrix once and
/// reuse it.
bool packs_at_use(int64_t n_tokens, int64_t chunk, Device device);

}  // namespace snapkv
