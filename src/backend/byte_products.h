// SPDX-License-Identifier: MIT
// ByteProducts: the vector instructions with which the CPU backend multiplies 8-bit activations.
// The speed of project() relative to that of project_packed() depends on them.
#pragma once

#include "snapkv/dtype.h"

namespace snapkv {

/// `other`: AVX-512 without VNNI, AMX (whose bf16 products are as fast), and 128-bit vectors; there
/// only project() rounds activations. `none`: nothing does (Compute::f32).
enum class ByteProducts { other, avx2, avx_vnni, avx512_vnni, none };

/// The products that Compute::automatic uses. Fixed once per process, like the CPU target
/// (snapkv/compute.h).
ByteProducts cpu_byte_products();

/// Whether project_packed() multiplies weights of this type in 8 bits too, directly from the file's
/// type.
bool packed_products_in_bytes(ByteProducts products, DType weight);

}  // namespace snapkv
