// SPDX-License-Identifier: MIT
// The header and the end of a KvPrefix's file (docs/session-file.md has the layout).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "snapkv/prefill.h"

namespace snapkv {

inline constexpr char kPrefixMagic[8] = {'S', 'N', 'A', 'P', 'K', 'V', 'P', '\n'};
inline constexpr uint32_t kPrefixVersion = 1;
inline constexpr uint32_t kPrefixVersionZstd = 2;  // each layer is a zstd frame
/// Layers begin at multiples of this, so that no page holds bytes of two layers.
inline constexpr size_t kPrefixPage = 4096;

constexpr size_t next_prefix_page(size_t offset) {
  return (offset + kPrefixPage - 1) / kPrefixPage * kPrefixPage;
}

struct PrefixFile {
  SavedPrefix saved;
  bool has_frames = false;
  int64_t n_layer = 0, n_head_kv = 0, head_dim = 0;
  size_t layer_bytes = 0;  // of a decoded layer
  /// [n_layer]; they point into the file's bytes.
  std::vector<std::span<const std::byte>> layers;
  std::vector<uint64_t> hashes;  // [n_layer], of the stored bytes
};

/// The bytes before and after the layers. The checksum covers both and is not among them.
struct PrefixEnds {
  std::span<const std::byte> head, tail;
};
/// Throws as parse_prefix_file() does, except for the checksum, which is not compared.
PrefixEnds prefix_ends(std::span<const std::byte> bytes, const std::string& path);
/// XXH3, 64 bits.
uint64_t prefix_checksum(const PrefixEnds& ends);

/// Reads everything but the layers, and checks it against the file's size and its checksum; no
/// field is trusted. Throws Error{kBadModel} naming the file and the field.
PrefixFile parse_prefix_file(std::span<const std::byte> bytes, const std::string& path);

}  // namespace snapkv
