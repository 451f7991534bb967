// SPDX-License-Identifier: MIT
// FNV-1a: a hash that distinguishes texts and files, the same on every machine. It does not
// withstand attacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace snapkv {

class Fnv1a {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) hash_ = (hash_ ^ static_cast<uint64_t>(b)) * kPrime;
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  uint64_t value() const { return hash_; }

 private:
  static constexpr uint64_t kPrime = 1099511628211u;
  uint64_t hash_ = 14695981039346656037u;
};

inline uint64_t fnv1a(std::string_view text) {
  Fnv1a hash;
  hash.add(text);
  return hash.value();
}

}  // namespace snapkv
