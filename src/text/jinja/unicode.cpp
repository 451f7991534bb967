// SPDX-License-Identifier: MIT
#include "text/jinja/unicode.h"

#include <utf8proc.h>

#include <iterator>

#include "text/jinja/text.h"

namespace snapkv::jinja {
namespace {

constexpr int32_t kIotaSubscript = 0x345;
constexpr int32_t kCapitalIota = 0x399;

bool one_of(int32_t c, std::initializer_list<utf8proc_category_t> categories) {
  const utf8proc_category_t category = utf8proc_category(c);
  for (const utf8proc_category_t each : categories) {
    if (category == each) return true;
  }
  return false;
}

// Letters whose case mapping cannot be derived from a decomposition.
constexpr int32_t kSharpS = 0xdf, kNPrecededByApostrophe = 0x149, kIWithDot = 0x130;

std::u32string decomposed(int32_t c, utf8proc_option_t how) {
  int32_t parts[32];
  int last_boundclass = 0;
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      c, parts, std::size(parts), static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | how),
      &last_boundclass);
  if (n <= 0 || n > utf8proc_ssize_t{32}) return {static_cast<char32_t>(c)};
  return {parts, parts + n};
}

std::u32string composed(const std::u32string& text) {
  std::u32string out = text;
  static_assert(sizeof(char32_t) == sizeof(utf8proc_int32_t));
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(
      reinterpret_cast<utf8proc_int32_t*>(out.data()), static_cast<utf8proc_ssize_t>(out.size()),
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return out;
}

std::u32string upper_of_parts(const std::u32string& parts) {
  std::u32string out;
  for (const char32_t part : parts) {
    out += static_cast<char32_t>(utf8proc_toupper(static_cast<int32_t>(part)));
  }
  return out;
}

bool ignores_case(int32_t c) {
  return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2019 ||
         one_of(c, {UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME, UTF8PROC_CATEGORY_CF,
                    UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_SK});
}

}  // namespace

bool is_space(int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x1f);
  return c == 0x85 || utf8proc_category(c) == UTF8PROC_CATEGORY_ZS ||
         utf8proc_category(c) == UTF8PROC_CATEGORY_ZL ||
         utf8proc_category(c) == UTF8PROC_CATEGORY_ZP;
}

bool is_alpha(int32_t c) {
  return one_of(c, {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT,
                    UTF8PROC_CATEGORY_LM, UTF8PROC_CATEGORY_LO});
}

bool is_decimal(int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(int32_t c) {
  if (is_decimal(c)) return true;
  // Superscripts, subscripts, circled and other marked digits, but not numbers above nine.
  return c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
         (c >= 0x2474 && c <= 0x247c) || (c >= 0x2488 && c <= 0x2490);
}

bool is_numeric(int32_t c) {
  return one_of(c, {UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO});
}

bool is_printable(int32_t c) {
  return c == ' ' || !one_of(c, {UTF8PROC_CATEGORY_CN, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF,
                                 UTF8PROC_CATEGORY_CS, UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_ZL,
                                 UTF8PROC_CATEGORY_ZP, UTF8PROC_CATEGORY_ZS});
}

bool is_upper(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) ||
         (c >= 0x24b6 && c <= 0x24cf);
}
bool is_lower(int32_t c) {
  return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba ||
         (c >= 0x2170 && c <= 0x217f) || (c >= 0x24d0 && c <= 0x24e9);
}
bool is_title(int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(int32_t c) { return is_upper(c) || is_lower(c) || is_title(c); }

bool is_name_char(int32_t c) {
  if (c < 0x80) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  return is_alpha(c) || one_of(c, {UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MC, UTF8PROC_CATEGORY_ND,
                                   UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_PC});
}

std::u32string to_upper(int32_t c) {
  if (c < 0x80) return {static_cast<char32_t>(c >= 'a' && c <= 'z' ? c - 32 : c)};
  if (c == kSharpS) return U"SS";
  const std::u32string parts = decomposed(c, static_cast<utf8proc_option_t>(0));
  if (parts.back() == kIotaSubscript && parts.size() > 1) {  // the iota becomes a letter of its own
    return composed(upper_of_parts(parts.substr(0, parts.size() - 1))) + U'\u0399';
  }
  const int32_t simple = utf8proc_toupper(c);
  if (simple != c || c == kIotaSubscript) {
    return {static_cast<char32_t>(c == kIotaSubscript ? kCapitalIota : simple)};
  }
  if (utf8proc_category(c) != UTF8PROC_CATEGORY_LL) return {static_cast<char32_t>(c)};
  // A ligature, or a letter with a mark that has no precomposed capital.
  const std::u32string all = decomposed(c, UTF8PROC_COMPAT);
  const bool canonical = parts.size() > 1;
  const bool ligature = all.size() > 1 && (c == kNPrecededByApostrophe || c == 0x587 ||
                                           c == 0x1e9a || (c >= 0xfb00 && c <= 0xfb17));
  if (!canonical && !ligature) return {static_cast<char32_t>(c)};
  return upper_of_parts(canonical ? parts : all);
}

std::u32string to_lower(int32_t c) {
  if (c < 0x80) return {static_cast<char32_t>(c >= 'A' && c <= 'Z' ? c + 32 : c)};
  if (c == kIWithDot) return U"i\u0307";
  return {static_cast<char32_t>(utf8proc_tolower(c))};
}

std::u32string to_title(int32_t c) {
  if (c < 0x80) return to_upper(c);
  if (is_title(c)) return {static_cast<char32_t>(c)};
  if (c >= 0x10d0 && c <= 0x10ff) return {static_cast<char32_t>(c)};  // Georgian has no titlecase
  const int32_t simple = utf8proc_totitle(c);
  if (simple != c && c != kSharpS) return {static_cast<char32_t>(simple)};
  std::u32string upper = to_upper(c);
  if (c == kNPrecededByApostrophe) return upper;
  for (size_t i = 1; i < upper.size(); ++i) {
    if (upper[i] == kCapitalIota) {
      upper[i] = kIotaSubscript;
      continue;
    }
    upper[i] = static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(upper[i])));
  }
  return upper;
}

std::u32string fold_case(int32_t c) {
  if (c < 0x80) return to_lower(c);
  return decomposed(c, UTF8PROC_CASEFOLD).size() == 0 ? std::u32string{static_cast<char32_t>(c)}
                                                      : composed(decomposed(c, UTF8PROC_CASEFOLD));
}

bool is_final_sigma(std::string_view text, size_t at) {
  bool letter_before = false;
  for (size_t i = at; i > 0;) {
    do {
      --i;
    } while (i > 0 && (text[i] & 0xc0) == 0x80);
    const int32_t c = decode_char(text, i);
    if (ignores_case(c)) continue;
    letter_before = is_cased(c);
    break;
  }
  if (!letter_before) return false;
  for (size_t i = at + char_bytes(text[at]); i < text.size(); i += char_bytes(text[i])) {
    const int32_t c = decode_char(text, i);
    if (!ignores_case(c)) return !is_cased(c);
  }
  return true;
}

}  // namespace snapkv::jinja
