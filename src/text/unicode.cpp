// SPDX-License-Identifier: MIT
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/unicode_versions.h"

namespace snapkv::unicode {
namespace {

constexpr uint32_t kCodePoints = 0x110000;

Category major_category(uint32_t c) {
  if (is_assigned_after_15(c)) return Category::other;
  // Added in Unicode 15.1; utf8proc 2.8 has 15.0, newer versions have these too.
  if (c >= 0x2ebf0 && c <= 0x2ee5d) return Category::letter;
  if ((c >= 0x2ffc && c <= 0x2fff) || c == 0x31ef) return Category::symbol;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Category::letter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return Category::mark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Category::number;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return Category::punctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return Category::symbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return Category::separator;
    default:
      return Category::other;
  }
}

// The categories of all code points. The table takes about 4 ms and is made on first use, because
// pre-tokenizers ask for every character of a text.
const std::vector<Category>& categories() {
  static const std::vector<Category> table = [] {
    std::vector<Category> t(kCodePoints);
    for (uint32_t c = 0; c < kCodePoints; ++c) t[c] = major_category(c);
    return t;
  }();
  return table;
}

utf8proc_option_t options_of(Form form) {
  constexpr int kStable = UTF8PROC_STABLE;
  constexpr int kCompat = UTF8PROC_STABLE | UTF8PROC_COMPAT;
  switch (form) {
    case Form::nfc:
      return static_cast<utf8proc_option_t>(kStable | UTF8PROC_COMPOSE);
    case Form::nfd:
      return static_cast<utf8proc_option_t>(kStable | UTF8PROC_DECOMPOSE);
    case Form::nfkc:
      return static_cast<utf8proc_option_t>(kCompat | UTF8PROC_COMPOSE);
    case Form::nfkd:
      return static_cast<utf8proc_option_t>(kCompat | UTF8PROC_DECOMPOSE);
  }
  return static_cast<utf8proc_option_t>(kStable);
}

// Sorts marks by their combining class, keeping the order within a class. utf8proc does this in the
// function that decomposes a whole text, but takes quadratic time for a long run of marks.
void order_marks(std::vector<utf8proc_int32_t>& code_points) {
  const auto combining_class = [](utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
  };
  for (auto begin = code_points.begin(); begin != code_points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    auto end = begin + 1;
    while (end != code_points.end() && combining_class(*end) != 0) ++end;
    std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    begin = end;
  }
}

// Appends `c`, in its parts if it is composed only since a later version of Unicode.
void append_composed(uint32_t c, std::string& out) {
  if (!is_decomposed_later(c)) {
    utf8::append(out, c);
    return;
  }
  utf8proc_int32_t parts[4];
  int boundary_class = 0;
  const auto n_parts =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, std::size(parts),
                              UTF8PROC_DECOMPOSE, &boundary_class);
  SNAPKV_CHECK(n_parts >= 1 && n_parts <= std::ssize(parts));
  for (utf8proc_ssize_t i = 0; i < n_parts; ++i) {
    utf8::append(out, static_cast<uint32_t>(parts[i]));
  }
}

// The beginning of `text` that is normalized by itself: one character with a later decomposition,
// or what stands before the next such one and before the next ASCII character but a first one.
size_t segment_length(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && (end == 0 || (text[end] & 0x80) != 0)) {
    const size_t n = utf8::valid_length(text.substr(end));
    SNAPKV_CHECK(n > 0);
    if (is_decomposed_later(utf8::code_point(text.data() + end, n))) return end == 0 ? n : end;
    end += n;
  }
  return end;
}

// `text` has no character with a later decomposition.
void normalize_segment(std::string_view text, Form form, std::vector<utf8proc_int32_t>& buffer,
                       std::string& out) {
  constexpr int kMostParts = 32;  // the longest decomposition of a code point has 18
  const utf8proc_option_t options = options_of(form);
  buffer.clear();
  while (!text.empty()) {
    const size_t n = utf8::valid_length(text);
    SNAPKV_CHECK(n > 0);
    utf8proc_int32_t parts[kMostParts];
    int boundary_class = 0;
    const auto n_parts = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(utf8::code_point(text.data(), n)), parts, kMostParts,
        static_cast<utf8proc_option_t>(options | UTF8PROC_DECOMPOSE), &boundary_class);
    SNAPKV_CHECK(n_parts >= 0 && n_parts <= kMostParts);
    buffer.insert(buffer.end(), parts, parts + n_parts);
    text.remove_prefix(n);
  }
  order_marks(buffer);
  const auto n_code_points = utf8proc_normalize_utf32(
      buffer.data(), static_cast<utf8proc_ssize_t>(buffer.size()), options);
  SNAPKV_CHECK(n_code_points >= 0);
  for (utf8proc_ssize_t i = 0; i < n_code_points; ++i) {
    append_composed(static_cast<uint32_t>(buffer[static_cast<size_t>(i)]), out);
  }
}

}  // namespace

Category category(uint32_t code_point) {
  return code_point < kCodePoints ? categories()[code_point] : Category::other;
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_word_character(uint32_t c) {
  if (c == 0x200c || c == 0x200d) return true;
  // Letters in circles and squares are symbols, but have the property Alphabetic.
  if ((c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
      (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189)) {
    return true;
  }
  switch (category(c)) {
    case Category::letter:
    case Category::mark:
      return true;
    case Category::number:
      return utf8proc_category(static_cast<utf8proc_int32_t>(c)) != UTF8PROC_CATEGORY_NO;
    case Category::punctuation:
      return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_PC;
    default:
      return false;
  }
}

bool is_punctuation(uint32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  return category(c) == Category::punctuation;
}

std::string normalized(std::string_view text, Form form) {
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> buffer;
  while (!text.empty()) {
    // No character composes with an ASCII character after it, so a text can be cut before each
    // ASCII character: in a run of them only the last may change, together with the text that
    // follows.
    const size_t ascii = utf8::ascii_prefix(text);
    if (ascii == text.size()) return out.append(text);
    const size_t same = ascii > 0 ? ascii - 1 : 0;
    out += text.substr(0, same);
    text.remove_prefix(same);
    const std::string_view segment = text.substr(0, segment_length(text));
    if (is_decomposed_later(utf8::code_point(segment.data(), utf8::valid_length(segment)))) {
      out += segment;
    } else {
      normalize_segment(segment, form, buffer, out);
    }
    text.remove_prefix(segment.size());
  }
  return out;
}

}  // namespace snapkv::unicode
