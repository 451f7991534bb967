// SPDX-License-Identifier: MIT
// ByteProducts: with which vectors the CPU backend multiplies activations of 8 bits. Asked by
// prefill, since the speed of project() beside that of project_packed() depends on it.
#pragma once

namespace snapkv {

/// `other` stands for those from AVX-512 on and for vectors of 128 bits.
enum class ByteProducts { other, avx2, avx_vnni };

/// Settled for the process, as the CPU target is (snapkv/compute.h).
ByteProducts cpu_byte_products();

}  // namespace snapkv
