// SPDX-License-Identifier: MIT
// ByteReader: reads little-endian values from front to back and checks each against the end of the
// bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace snapkv {

static_assert(std::endian::native == std::endian::little, "files are read without swapping bytes");

/// Makes untrusted text fit for a message: at most 80 bytes, with control characters and bytes
/// beyond ASCII escaped.
inline std::string printable(std::string_view text) {
  constexpr size_t kMaxBytes = 80;
  std::string out;
  for (const char c : text.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kMaxBytes) out += "...";
  return out;
}

/// In errors `field` names what is read and `label` the file; both must outlive the reader.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const std::string& label)
      : bytes_(bytes), label_(label) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  T read(std::string_view field) {
    need(sizeof(T), field);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::string read_string(std::string_view field) {
    const auto length = read<uint64_t>(field);
    need(length, field);
    std::string s(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
    position_ += length;
    return s;
  }

  void skip(uint64_t n_bytes, std::string_view field) {
    need(n_bytes, field);
    position_ += n_bytes;
  }

  /// Throws if `count` items of at least `item_bytes` each cannot fit in the rest of the file.
  void check_count(uint64_t count, uint64_t item_bytes, std::string_view field) const {
    if (count > remaining() / item_bytes) {
      fail(ErrorCode::kBadModel,
           "'{}': {} is {}, which the {} bytes left in the file (of {}) cannot hold; it is "
           "truncated or damaged",
           label_, printable(field), count, remaining(), bytes_.size());
    }
  }

 private:
  void need(uint64_t count, std::string_view field) const {
    if (count > remaining()) {
      fail(ErrorCode::kBadModel, "'{}': truncated: {} needs {} bytes at offset {}, the file has {}",
           label_, printable(field), count, position_, bytes_.size());
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& label_;
  uint64_t position_ = 0;
};

}  // namespace snapkv
