// SPDX-License-Identifier: MIT
// The scales of a q4_k or q5_k superblock, unpacked all at once: what every kernel of the cpu
// backend begins with. The layout is explained at PartScales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "format/block_types.h"

namespace snapkv::cpu {

/// Byte j (from the lowest) belongs to part j.
struct PartBytes {
  uint64_t scales;
  uint64_t mins;
  int scale(int part) const { return static_cast<int>(scales >> (8 * part) & 63); }
  int min(int part) const { return static_cast<int>(mins >> (8 * part) & 63); }
};

/// `superblock` begins with PartScales.
inline __attribute__((always_inline)) PartBytes unpack_scales(const char* superblock) {
  uint32_t a, b, c;  // four bytes of PartScales::bytes each
  const char* bytes = superblock + offsetof(PartScales, bytes);
  std::memcpy(&a, bytes, sizeof(a));
  std::memcpy(&b, bytes + 4, sizeof(b));
  std::memcpy(&c, bytes + 8, sizeof(c));
  const uint32_t scales_high = (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u);
  const uint32_t mins_high = (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u);
  return {.scales = (a & 0x3f3f3f3fu) | uint64_t{scales_high} << 32,
          .mins = (b & 0x3f3f3f3fu) | uint64_t{mins_high} << 32};
}

}  // namespace snapkv::cpu
