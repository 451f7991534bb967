// SPDX-License-Identifier: MIT
#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace snapkv::utf8 {
namespace {

unsigned char byte_at(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// The length that a lead byte announces, and the range of the second byte.
struct Lead {
  size_t length;
  unsigned char low, high;
};

Lead lead_of(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xc2) return {0, 0, 0};
  if (c < 0xe0) return {2, 0x80, 0xbf};
  if (c == 0xe0) return {3, 0xa0, 0xbf};  // no overlong forms
  if (c == 0xed) return {3, 0x80, 0x9f};  // no surrogates
  if (c < 0xf0) return {3, 0x80, 0xbf};
  if (c == 0xf0) return {4, 0x90, 0xbf};
  if (c < 0xf4) return {4, 0x80, 0xbf};
  if (c == 0xf4) return {4, 0x80, 0x8f};  // nothing above U+10FFFF
  return {0, 0, 0};
}

/// How many bytes of `text` fit what its first byte announces, and how many it announces.
struct Prefix {
  size_t length;
  size_t announced;
};

Prefix prefix_of(std::string_view text) {
  if (text.empty()) return {0, 0};
  const Lead lead = lead_of(byte_at(text, 0));
  if (lead.length == 0) return {0, 0};
  size_t n = 1;
  while (n < lead.length && n < text.size()) {
    const unsigned char c = byte_at(text, n);
    const bool continues = n == 1 ? c >= lead.low && c <= lead.high : c >= 0x80 && c <= 0xbf;
    if (!continues) return {n, 0};
    ++n;
  }
  return {n, lead.length};
}

}  // namespace

size_t valid_length(std::string_view text) {
  const Prefix p = prefix_of(text);
  return p.length == p.announced ? p.length : 0;
}

size_t incomplete_length(std::string_view text) {
  const Prefix p = prefix_of(text);
  return p.length < p.announced ? p.length : 0;
}

uint32_t code_point(const char* at, size_t length) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  switch (length) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3:
      return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 |
             (byte(3) & 0x3f);
  }
}

void append(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
    return;
  }
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

size_t ascii_prefix(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & kHighBits) != 0) break;
  }
  while (i < text.size() && byte_at(text, i) < 0x80) ++i;
  return i;
}

size_t valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t n_ascii = ascii_prefix(text.substr(at));
    const size_t n = n_ascii > 0 ? 0 : valid_length(text.substr(at));
    if (n_ascii == 0 && n == 0) break;
    at += n_ascii + n;
  }
  return at;
}

std::string with_replacements(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t n = valid_length(text);
    out += n > 0 ? text.substr(0, n) : kReplacement;
    text.remove_prefix(n > 0 ? n : 1);
  }
  return out;
}

}  // namespace snapkv::utf8
