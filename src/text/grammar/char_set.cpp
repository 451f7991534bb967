// SPDX-License-Identifier: MIT
#include "text/grammar/char_set.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace snapkv::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;
// The last characters with one, two, three and four bytes.
constexpr std::array<uint32_t, 4> kLastByLength = {0x7f, 0x7ff, 0xffff, kMostCodePoint};

// Appends the sequences of a range whose characters have the same number of bytes. The range is cut
// until all its characters have the same leading bytes and each later byte can be anywhere in a
// span.
void append_sequences(std::vector<ByteSequence>& out, uint32_t first, uint32_t last,
                      size_t length) {
  for (size_t n_tail = 1; n_tail < length; ++n_tail) {
    const uint32_t mask = (1u << (6 * n_tail)) - 1;  // the bits in the last n_tail bytes
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      append_sequences(out, first, first | mask, length);
      append_sequences(out, (first | mask) + 1, last, length);
      return;
    }
    if ((last & mask) != mask) {
      append_sequences(out, first, (last & ~mask) - 1, length);
      append_sequences(out, last & ~mask, last, length);
      return;
    }
  }
  std::string low, high;
  utf8::append(low, first);
  utf8::append(high, last);
  ByteSequence sequence;
  sequence.length = length;
  for (size_t i = 0; i < length; ++i) {
    sequence.spans[i] = {static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])};
  }
  out.push_back(sequence);
}

}  // namespace

void CharSet::add(uint32_t first, uint32_t last) {
  if (first < kFirstSurrogate && last > kLastSurrogate) {
    add(first, kFirstSurrogate - 1);
    add(kLastSurrogate + 1, last);
    return;
  }
  if (first >= kFirstSurrogate && first <= kLastSurrogate) first = kLastSurrogate + 1;
  if (last >= kFirstSurrogate && last <= kLastSurrogate) last = kFirstSurrogate - 1;
  if (first > last) return;
  const auto begin = std::lower_bound(
      ranges_.begin(), ranges_.end(), first,
      [](const Range& range, uint32_t value) { return uint64_t{range.second} + 1 < value; });
  auto end = begin;
  for (; end != ranges_.end() && end->first <= uint64_t{last} + 1; ++end) {
    first = std::min(first, end->first);
    last = std::max(last, end->second);
  }
  const auto at = ranges_.erase(begin, end);
  ranges_.insert(at, {first, last});
}

void CharSet::add(const CharSet& other) {
  for (const auto& [first, last] : other.ranges_) add(first, last);
}

CharSet CharSet::negated() const {
  CharSet result;
  uint32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) result.add(next, first - 1);
    next = last + 1;
  }
  if (next <= kMostCodePoint) result.add(next, kMostCodePoint);
  return result;
}

CharSet CharSet::without(const CharSet& other) const {
  CharSet rest = negated();
  rest.add(other);
  return rest.negated();
}

bool CharSet::contains(uint32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.first <= code_point && code_point <= range.second;
  });
}

std::vector<ByteSequence> CharSet::byte_sequences() const {
  std::vector<ByteSequence> sequences;
  for (const auto& [first, last] : ranges_) {
    uint32_t from = first;
    for (size_t length = 1; length <= 4; ++length) {
      const uint32_t most = kLastByLength[length - 1];
      if (from > most || from > last) continue;
      append_sequences(sequences, from, std::min(last, most), length);
      from = most + 1;
    }
  }
  return sequences;
}

}  // namespace snapkv::grammar
