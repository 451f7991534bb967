// SPDX-License-Identifier: MIT
// FNV-1a: the hash of recorded texts and values, which any language computes in a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace snapkv::test {

inline uint64_t fnv1a(std::span<const std::byte> bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}
inline uint64_t fnv1a(std::string_view text) { return fnv1a(std::as_bytes(std::span(text))); }

}  // namespace snapkv::test
