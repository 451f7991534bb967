// SPDX-License-Identifier: MIT
#include "backend/cpu/products/byte_products.h"

#include "backend/cpu/products/many_rows/byte_panels.h"
#include "backend/cpu/target/cpu_target.h"

namespace snapkv::cpu {

ByteProducts byte_products(Compute compute) {
  if (compute == Compute::f32) return ByteProducts::none;
  if (compute == Compute::bf16 || has(CpuTarget::amx)) return ByteProducts::other;
  if (has(CpuTarget::avx512_vnni)) return ByteProducts::avx512_vnni;
  if (has(CpuTarget::avx512)) return ByteProducts::other;
  if (has(CpuTarget::avx_vnni)) return ByteProducts::avx_vnni;
  return has(CpuTarget::avx2) ? ByteProducts::avx2 : ByteProducts::other;
}

bool packed_products_in_bytes(ByteProducts products, DType weight) {
  return byte_panel_kernel(products, weight).multiply != nullptr;
}

}  // namespace snapkv::cpu
