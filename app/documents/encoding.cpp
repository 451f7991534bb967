// SPDX-License-Identifier: MIT
#include "documents/encoding.h"

#include <iconv.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/utf8.h"

namespace snapkv::documents {
namespace {

/// What bytes that are not UTF-8 are made of.
struct Census {
  size_t n_control = 0;     // C0, but for white space and escape
  size_t n_letters = 0;     // of ASCII
  size_t n_high = 0;        // bytes of 0x80 and above that are not part of UTF-8
  size_t n_high_pairs = 0;  // those after another one
  size_t n_undefined = 0;   // those that Windows-1252 has no character for
  size_t n_utf8 = 0;        // characters of several bytes
};

Census census_of(std::string_view bytes) {
  Census census;
  bool after_high = false;
  for (size_t at = 0; at < bytes.size();) {
    const auto c = static_cast<unsigned char>(bytes[at]);
    const size_t n = utf8::valid_length(bytes.substr(at));
    const bool is_high = n == 0;
    if (is_high) {
      ++census.n_high;
      census.n_high_pairs += after_high ? 1 : 0;
      census.n_undefined += c == 0x81 || c == 0x8d || c == 0x8f || c == 0x90 || c == 0x9d ? 1 : 0;
    } else if (n > 1) {
      ++census.n_utf8;
    } else {
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      census.n_letters += is_letter ? 1 : 0;
      census.n_control += (c < 0x20 && !(c >= '\t' && c <= '\r') && c != 0x1b) || c == 0x7f ? 1 : 0;
    }
    after_high = is_high;
    at += std::max<size_t>(n, 1);
  }
  return census;
}

/// "UTF-16LE" or "UTF-16BE" where the zeros in the bytes say so: of Latin letters every second byte
/// is one. Else empty.
std::string utf16_without_mark(std::string_view bytes) {
  constexpr size_t kLook = 4096, kFewest = 8;
  bytes = bytes.substr(0, kLook);
  if (bytes.size() < kFewest) return "";
  size_t zeros[2] = {0, 0};
  for (size_t i = 0; i < bytes.size(); ++i) zeros[i % 2] += bytes[i] == '\0' ? 1 : 0;
  const size_t half = bytes.size() / 2;
  if (zeros[1] * 2 > half && zeros[0] * 20 < half) return "UTF-16LE";
  if (zeros[0] * 2 > half && zeros[1] * 20 < half) return "UTF-16BE";
  return "";
}

struct CloseIconv {
  void operator()(void* converter) const { iconv_close(converter); }
};

std::string convert(std::string_view bytes, const std::string& charset, const std::string& name,
                    const ReadLimits& limits) {
  const auto kNone = reinterpret_cast<iconv_t>(-1);
  const iconv_t opened = iconv_open("UTF-8", charset.c_str());
  if (opened == kNone) {
    fail(ErrorCode::kUsage, "{}: unknown character encoding '{}'", name, charset);
  }
  const std::unique_ptr<void, CloseIconv> converter(opened);
  std::string text;
  char* in = const_cast<char*>(bytes.data());  // iconv changes the pointer only
  size_t n_left = bytes.size();
  while (n_left > 0) {
    char block[16384];
    char* out = block;
    size_t room = sizeof block;
    const size_t done = iconv(converter.get(), &in, &n_left, &out, &room);
    text.append(block, sizeof block - room);
    if (done == static_cast<size_t>(-1) && errno != E2BIG) {
      fail(ErrorCode::kUsage, "{}: not valid {}, from byte {} on", name, charset,
           bytes.size() - n_left);
    }
    if (text.size() > limits.most_bytes) {
      fail(ErrorCode::kUsage, "{}: more than {} bytes of text", name, limits.most_bytes);
    }
  }
  return text;
}

/// Without the halves of characters at both ends, as where a file was cut, if the rest is UTF-8
/// with characters of several bytes; empty if it is not.
std::string_view uncut_utf8(std::string_view bytes) {
  constexpr size_t kMostTail = 3;  // bytes of a character after its first one
  const auto is_tail = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  for (size_t i = 0; i < kMostTail && !bytes.empty() && is_tail(bytes.front()); ++i) {
    bytes.remove_prefix(1);
  }
  const size_t n_valid = utf8::valid_prefix(bytes);
  const std::string_view rest = bytes.substr(n_valid);
  if (!rest.empty() && utf8::incomplete_length(rest) != rest.size()) return {};
  bytes = bytes.substr(0, n_valid);
  return utf8::ascii_prefix(bytes) < bytes.size() ? bytes : std::string_view();
}

/// Windows-1252, if the bytes may be that.
std::string convert_latin1(std::string_view bytes, const std::string& name,
                           const ReadLimits& limits) {
  const Census census = census_of(bytes);
  if (census.n_control > bytes.size() / 200 || bytes.find('\0') != std::string_view::npos) {
    fail(ErrorCode::kUsage, "{}: data, not a document snapkv can read", name);
  }
  if (census.n_utf8 > 0 && census.n_utf8 >= census.n_high) {
    fail(ErrorCode::kUsage,
         "{}: not valid UTF-8, from byte {} on; iconv leaves out what is not: iconv -c -f UTF-8 "
         "-t UTF-8",
         name, utf8::valid_prefix(bytes));
  }
  // Western languages have a letter with an accent now and then, seldom two in a row
  const bool is_western = census.n_undefined == 0 && census.n_high_pairs * 2 <= census.n_high &&
                          census.n_high * 3 <= census.n_letters + 8;
  if (!is_western) {
    fail(ErrorCode::kUsage,
         "{}: a text that is neither UTF-8, UTF-16 nor Latin-1; iconv makes it UTF-8: "
         "iconv -f ITS-ENCODING -t UTF-8",
         name);
  }
  return convert(bytes, "WINDOWS-1252", name, limits);
}

}  // namespace

std::string to_utf8(std::string bytes, const std::string& declared, const std::string& name,
                    const ReadLimits& limits) {
  const std::string_view view = bytes;
  constexpr std::string_view kLittle32("\xff\xfe\0\0", 4), kBig32("\0\0\xfe\xff", 4);
  if (view.starts_with(kLittle32)) return convert(view.substr(4), "UTF-32LE", name, limits);
  if (view.starts_with(kBig32)) return convert(view.substr(4), "UTF-32BE", name, limits);
  if (view.starts_with("\xff\xfe")) return convert(view.substr(2), "UTF-16LE", name, limits);
  if (view.starts_with("\xfe\xff")) return convert(view.substr(2), "UTF-16BE", name, limits);
  if (const std::string charset = utf16_without_mark(view); !charset.empty()) {
    return convert(view, charset, name, limits);
  }
  if (utf8::is_valid(view)) {
    if (view.starts_with("\xef\xbb\xbf")) bytes.erase(0, 3);
    return bytes;
  }
  if (const std::string_view uncut = uncut_utf8(view); !uncut.empty()) return std::string(uncut);
  return declared.empty() ? convert_latin1(view, name, limits)
                          : convert(view, declared, name, limits);
}

}  // namespace snapkv::documents
