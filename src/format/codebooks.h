// SPDX-License-Identifier: MIT
// Codebooks: the groups of 8 or 4 levels that the types of codebook_types.h choose from, which
// ggml's format defines. A level is a byte; the lowest byte of an entry is the group's first.
#pragma once

#include <array>
#include <cstdint>

namespace snapkv::codebooks {

extern const std::array<uint64_t, 256> kIq2Xxs;   // magnitudes 8, 25, 43
extern const std::array<uint64_t, 512> kIq2Xs;    // the same
extern const std::array<uint64_t, 1024> kIq2S;    // the same
extern const std::array<uint32_t, 256> kIq3Xxs;   // magnitudes 4, 12, ... 52, 62
extern const std::array<uint32_t, 512> kIq3S;     // magnitudes 1, 3, ... 15
extern const std::array<uint64_t, 2048> kIq1S;    // -1, 0, 1, as 0, 8, 16

/// The entries of kIq3Xxs and kIq3S with a nibble in place of each level: its place among the
/// magnitudes.
extern const std::array<uint16_t, 256> kIq3XxsPlaces;
extern const std::array<uint16_t, 512> kIq3SPlaces;

/// Byte i is 255 if bit i of the index is set, else 0.
extern const std::array<uint64_t, 256> kByteMasks;

}  // namespace snapkv::codebooks
