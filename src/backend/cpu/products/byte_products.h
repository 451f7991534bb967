// SPDX-License-Identifier: MIT
// ByteProducts: the vector instructions with which 8-bit activations are multiplied. The speed of
// project() relative to that of project_packed() depends on them.
#pragma once

#include "snapkv/compute.h"
#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// `other`: AVX-512 without VNNI, AMX (whose bf16 products are as fast), and 128-bit vectors; there
/// only project() rounds activations. `none`: nothing does (Compute::f32).
enum class ByteProducts { other, avx2, avx_vnni, avx512_vnni, none };

/// Fixed once per process for each `compute`, like the CPU target (snapkv/compute.h).
ByteProducts byte_products(Compute compute);

/// Whether project_packed() multiplies weights of this type in 8 bits too, directly from the file's
/// type.
bool packed_products_in_bytes(ByteProducts products, DType weight);

}  // namespace snapkv::cpu
