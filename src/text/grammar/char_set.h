// SPDX-License-Identifier: MIT
// CharSet: a set of Unicode characters, and the byte sequences that spell them in UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace snapkv::grammar {

inline constexpr uint32_t kMostCodePoint = 0x10ffff;

/// Bytes from `low` to `high`, both included.
struct ByteSpan {
  uint8_t low = 0;
  uint8_t high = 0;
  bool operator==(const ByteSpan&) const = default;
  auto operator<=>(const ByteSpan&) const = default;
};

/// Characters whose UTF-8 form has `length` bytes, each anywhere in its span.
struct ByteSequence {
  size_t length = 0;
  std::array<ByteSpan, 4> spans;
};

class CharSet {
 public:
  using Range = std::pair<uint32_t, uint32_t>;  // first and last

  /// Adds the characters from `first` to `last`, first <= last, except surrogates.
  void add(uint32_t first, uint32_t last);
  void add(const CharSet& other);
  /// All characters that are not in this set.
  CharSet negated() const;
  /// The characters of this set that are not in `other`.
  CharSet without(const CharSet& other) const;

  bool contains(uint32_t code_point) const;
  bool empty() const { return ranges_.empty(); }
  /// Sorted, disjoint, and not adjacent except around the surrogates.
  const std::vector<Range>& ranges() const { return ranges_; }
  /// The same set as bytes; no two sequences have a character in common.
  std::vector<ByteSequence> byte_sequences() const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace snapkv::grammar
