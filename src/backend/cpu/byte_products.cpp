// SPDX-License-Identifier: MIT
#include "backend/byte_products.h"

#include "backend/cpu/byte_panels.h"
#include "backend/cpu/cpu_target.h"

namespace snapkv {

ByteProducts cpu_byte_products() {
  using cpu::CpuTarget;
  if (cpu::has(CpuTarget::amx)) return ByteProducts::other;
  if (cpu::has(CpuTarget::avx512_vnni)) return ByteProducts::avx512_vnni;
  if (cpu::has(CpuTarget::avx512)) return ByteProducts::other;
  if (cpu::has(CpuTarget::avx_vnni)) return ByteProducts::avx_vnni;
  return cpu::has(CpuTarget::avx2) ? ByteProducts::avx2 : ByteProducts::other;
}

bool packed_products_in_bytes(ByteProducts products, DType weight) {
  return cpu::byte_panel_kernel(products, weight).multiply != nullptr;
}

}  // namespace snapkv
