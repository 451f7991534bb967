// SPDX-License-Identifier: MIT
#include "text/byte_alphabet.h"

#include "base/utf8.h"

namespace snapkv::byte_alphabet {
namespace {

constexpr uint32_t kFirstMoved = 0x100;
constexpr uint32_t kLastMoved = 0x143;
constexpr std::string_view kDigits = "0123456789ABCDEF";

constexpr bool is_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Moved {
  std::array<uint8_t, kLastMoved - kFirstMoved + 1> bytes{};
  std::array<uint32_t, 256> code_points{};
  constexpr Moved() {
    uint32_t next = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if (is_itself(byte)) {
        code_points[byte] = byte;
      } else {
        bytes[next] = static_cast<uint8_t>(byte);
        code_points[byte] = kFirstMoved + next++;
      }
    }
  }
};
constexpr Moved kMoved;

}  // namespace

const std::array<std::string, 256>& spellings() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> t;
    for (size_t byte = 0; byte < t.size(); ++byte) utf8::append(t[byte], kMoved.code_points[byte]);
    return t;
  }();
  return table;
}

int byte_of(uint32_t c) {
  if (c < 256) return is_itself(static_cast<int>(c)) ? static_cast<int>(c) : -1;
  return c <= kLastMoved ? kMoved.bytes[c - kFirstMoved] : -1;
}

void append(std::string& out, std::string_view bytes) {
  for (const char c : bytes) out += spellings()[static_cast<unsigned char>(c)];
}

std::optional<std::string> bytes_of(std::string_view token) {
  std::string out;
  while (!token.empty()) {
    const size_t n = utf8::valid_length(token);
    const int byte = n > 0 ? byte_of(utf8::code_point(token.data(), n)) : -1;
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(byte);
    token.remove_prefix(n);
  }
  return out;
}

std::optional<uint8_t> hex_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const size_t high = kDigits.find(token[3]);
  const size_t low = kDigits.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

std::string hex_spelling(uint8_t byte) {
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace snapkv::byte_alphabet
