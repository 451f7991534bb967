// SPDX-License-Identifier: MIT
#include "server/http/chunks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv::server {
namespace {

using Read = std::function<ssize_t(char*, size_t)>;

constexpr size_t kMostLine = 16 << 10;

/// Reads a line and returns it without its CR LF; nothing if it is longer than `most` or breaks
/// off.
std::optional<std::string> read_line(const Read& read, size_t most) {
  std::string line;
  char c = 0;
  while (line.size() <= most + 1 && read(&c, 1) == 1) {
    line += c;
    if (c != '\n') continue;
    if (!line.ends_with("\r\n")) return std::nullopt;
    line.resize(line.size() - 2);
    return line;
  }
  return std::nullopt;
}

/// Parses the size: "1a" or "1a ; name=value" is 26.
std::optional<size_t> size_of(std::string_view line) {
  size_t size = 0;
  const char* const end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data(), end, size, 16);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(stop, static_cast<size_t>(end - stop));
  const size_t at = rest.find_first_not_of(" \t");
  return at == rest.npos || rest[at] == ';' ? std::optional(size) : std::nullopt;
}

bool read_data(const Read& read, size_t size,
               const std::function<bool(const char*, size_t)>& receive) {
  std::array<char, 16 << 10> part;
  while (size > 0) {
    const ssize_t n = read(part.data(), std::min(size, part.size()));
    if (n <= 0 || !receive(part.data(), static_cast<size_t>(n))) return false;
    size -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

bool read_chunks(const Read& read, const std::function<bool(const char*, size_t)>& receive) {
  while (true) {
    const std::optional<std::string> line = read_line(read, kMostLine);
    const std::optional<size_t> size = line ? size_of(*line) : std::nullopt;
    if (!size) return false;
    if (*size == 0) break;
    if (!read_data(read, *size, receive) || read_line(read, 0) != "") return false;
  }
  for (size_t left = kMostLine;;) {  // trailers, then an empty line
    const std::optional<std::string> line = read_line(read, left);
    if (!line) return false;
    if (line->empty()) return true;
    left -= std::min(left, line->size());
  }
}

}  // namespace snapkv::server
