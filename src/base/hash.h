// SPDX-License-Identifier: MIT
// XXH3 of 64 bits: a hash that distinguishes texts and files, the same on every machine. It does
// not withstand attacks.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace snapkv {

inline uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}
inline uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

/// The hash of what is added, piece by piece.
class Hash64 {
 public:
  Hash64() { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) {
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace snapkv
