// SPDX-License-Identifier: MIT
// ByteProducts: with which vectors the CPU backend multiplies activations of 8 bits. Asked by
// prefill, since the speed of project() beside that of project_packed() depends on it, and by the
// backend.
#pragma once

#include "snapkv/dtype.h"

namespace snapkv {

/// `other` stands for AVX-512 without VNNI, for AMX, whose products of bf16 are as fast, and for
/// vectors of 128 bits.
enum class ByteProducts { other, avx2, avx_vnni, avx512_vnni };

/// What Compute::automatic takes. Settled for the process, as the CPU target is (snapkv/compute.h).
ByteProducts cpu_byte_products();

/// Whether project_packed() multiplies weights of this type in 8 bits too, from the file's type.
bool packed_products_in_bytes(ByteProducts products, DType weight);

}  // namespace snapkv
