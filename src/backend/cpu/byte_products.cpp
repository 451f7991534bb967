// SPDX-License-Identifier: MIT
#include "backend/byte_products.h"

#include "backend/cpu/cpu_target.h"

namespace snapkv {

ByteProducts cpu_byte_products() {
  using cpu::CpuTarget;
  if (cpu::has(CpuTarget::avx512)) return ByteProducts::other;
  if (cpu::has(CpuTarget::avx_vnni)) return ByteProducts::avx_vnni;
  return cpu::has(CpuTarget::avx2) ? ByteProducts::avx2 : ByteProducts::other;
}

}  // namespace snapkv
