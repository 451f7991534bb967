// SPDX-License-Identifier: MIT
#include "format/codebooks.h"

#include <cstddef>

namespace snapkv::codebooks {
namespace {

/// Entries whose levels are named by codes of `bits` bits each, the first in the lowest bits.
template <typename Entry, int bits, size_t n, size_t n_levels>
constexpr std::array<Entry, n> expand(const uint16_t (&codes)[n],
                                      const uint8_t (&levels)[n_levels]) {
  std::array<Entry, n> entries{};
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < sizeof(Entry); ++k) {
      const Entry level = levels[codes[i] >> (bits * k) & ((1 << bits) - 1)];
      entries[i] |= level << (8 * k);
    }
  }
  return entries;
}

constexpr uint16_t kIq2XxsCodes[] = {
#include "format/codebooks/iq2_xxs.inc"
};
constexpr uint16_t kIq2XsCodes[] = {
#include "format/codebooks/iq2_xs.inc"
};
constexpr uint16_t kIq2SCodes[] = {
#include "format/codebooks/iq2_s.inc"
};
constexpr uint16_t kIq3XxsCodes[] = {
#include "format/codebooks/iq3_xxs.inc"
};
constexpr uint16_t kIq3SCodes[] = {
#include "format/codebooks/iq3_s.inc"
};
constexpr uint16_t kIq1SCodes[] = {
#include "format/codebooks/iq1_s.inc"
};

constexpr uint8_t kIq2Levels[] = {8, 25, 43}, kIq1Levels[] = {0, 8, 16};
constexpr uint8_t kIq3XxsLevels[] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr uint8_t kIq3SLevels[] = {1, 3, 5, 7, 9, 11, 13, 15};

/// Codes of 3 bits, 4 bits apart.
template <size_t n>
constexpr std::array<uint16_t, n> to_nibbles(const uint16_t (&codes)[n]) {
  std::array<uint16_t, n> entries{};
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < 4; ++k) {
      entries[i] = static_cast<uint16_t>(entries[i] | (codes[i] >> (3 * k) & 7) << (4 * k));
    }
  }
  return entries;
}

constexpr std::array<uint64_t, 256> byte_masks() {
  std::array<uint64_t, 256> masks{};
  for (size_t i = 0; i < 256; ++i) {
    for (size_t k = 0; k < 8; ++k) {
      if (i >> k & 1) masks[i] |= uint64_t{255} << (8 * k);
    }
  }
  return masks;
}

}  // namespace

constexpr std::array<uint64_t, 256> kIq2Xxs = expand<uint64_t, 2>(kIq2XxsCodes, kIq2Levels);
constexpr std::array<uint64_t, 512> kIq2Xs = expand<uint64_t, 2>(kIq2XsCodes, kIq2Levels);
constexpr std::array<uint64_t, 1024> kIq2S = expand<uint64_t, 2>(kIq2SCodes, kIq2Levels);
constexpr std::array<uint32_t, 256> kIq3Xxs = expand<uint32_t, 3>(kIq3XxsCodes, kIq3XxsLevels);
constexpr std::array<uint32_t, 512> kIq3S = expand<uint32_t, 3>(kIq3SCodes, kIq3SLevels);
constexpr std::array<uint16_t, 256> kIq3XxsPlaces = to_nibbles(kIq3XxsCodes);
constexpr std::array<uint16_t, 512> kIq3SPlaces = to_nibbles(kIq3SCodes);
constexpr std::array<uint64_t, 2048> kIq1S = expand<uint64_t, 2>(kIq1SCodes, kIq1Levels);
constexpr std::array<uint64_t, 256> kByteMasks = byte_masks();

}  // namespace snapkv::codebooks
