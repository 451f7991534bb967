// SPDX-License-Identifier: MIT
#include "text/jinja/text_functions.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "text/jinja/unicode.h"

namespace snapkv::jinja {
namespace {

size_t char_before(std::string_view bytes, size_t end) {
  do {
    --end;
  } while ((bytes[end] & 0xc0) == 0x80);
  return end;
}

/// The text that `change` makes from each character and the byte at which it begins.
template <typename Change>
TextPtr map_chars(Budget& budget, const Text& text, Change change) {
  budget.charge(text.size() / 4);
  TextBuilder out(budget);
  const std::string& bytes = text.bytes();
  std::string changed;
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    changed.clear();
    for (const char32_t c : change(decode_char(bytes, at), at)) {
      utf8::append(changed, c);
    }
    out.append_as(changed, !text.input().empty() && text.has_input(at, at + 1));
  }
  return out.finish(text.markup());
}

std::u32string lower_at(const Text& text, int32_t c, size_t at) {
  constexpr int32_t kSigma = 0x3a3;
  if (c == kSigma && is_final_sigma(text.bytes(), at)) return U"\u03c2";
  return to_lower(c);
}

bool strips(const Text* chars, std::string_view bytes, size_t at) {
  if (chars == nullptr) return is_space(decode_char(bytes, at));
  return chars->bytes().find(bytes.substr(at, char_bytes(bytes[at]))) != std::string::npos;
}

struct Piece {
  size_t begin, end;
};

std::vector<Piece> split_at(Budget& budget, std::string_view bytes, std::string_view separator,
                            int64_t max_split, bool from_right) {
  std::vector<Piece> pieces;
  size_t begin = 0, end = bytes.size();
  while (max_split-- != 0) {
    budget.charge(1);
    if (from_right) {
      const size_t at = end < separator.size() ? std::string_view::npos
                                               : bytes.rfind(separator, end - separator.size());
      if (at == std::string_view::npos) break;
      pieces.push_back({at + separator.size(), end});
      end = at;
    } else {
      const size_t at = bytes.find(separator, begin);
      if (at == std::string_view::npos) break;
      pieces.push_back({begin, at});
      begin = at + separator.size();
    }
  }
  pieces.push_back({begin, end});
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

size_t skip_while(std::string_view bytes, size_t at, bool space) {
  while (at < bytes.size() && is_space(decode_char(bytes, at)) == space) {
    at += char_bytes(bytes[at]);
  }
  return at;
}
size_t skip_back_while(std::string_view bytes, size_t end, bool space) {
  while (end > 0) {
    const size_t at = char_before(bytes, end);
    if (is_space(decode_char(bytes, at)) != space) break;
    end = at;
  }
  return end;
}

std::vector<Piece> split_at_space(Budget& budget, std::string_view bytes, int64_t max_split) {
  std::vector<Piece> pieces;
  size_t at = skip_while(bytes, 0, true);
  for (; max_split != 0 && at < bytes.size(); --max_split) {
    budget.charge(1);
    const size_t word_end = skip_while(bytes, at, false);
    pieces.push_back({at, word_end});
    at = skip_while(bytes, word_end, true);
  }
  if (at < bytes.size()) pieces.push_back({at, bytes.size()});
  return pieces;
}

std::vector<Piece> split_at_space_from_right(Budget& budget, std::string_view bytes,
                                             int64_t max_split) {
  std::vector<Piece> pieces;
  size_t end = skip_back_while(bytes, bytes.size(), true);
  for (; max_split != 0 && end > 0; --max_split) {
    budget.charge(1);
    const size_t word = skip_back_while(bytes, end, false);
    pieces.push_back({word, end});
    end = skip_back_while(bytes, word, true);
  }
  if (end > 0) pieces.push_back({0, end});
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace

TextPtr upper(Budget& budget, const Text& text) {
  return map_chars(budget, text, [](int32_t c, size_t) { return to_upper(c); });
}
TextPtr lower(Budget& budget, const Text& text) {
  return map_chars(budget, text, [&](int32_t c, size_t at) { return lower_at(text, c, at); });
}
TextPtr casefold(Budget& budget, const Text& text) {
  return map_chars(budget, text, [](int32_t c, size_t) { return fold_case(c); });
}
TextPtr swapcase(Budget& budget, const Text& text) {
  return map_chars(budget, text, [&](int32_t c, size_t at) {
    return is_upper(c)   ? lower_at(text, c, at)
           : is_lower(c) ? to_upper(c)
                         : std::u32string{char32_t(c)};
  });
}
TextPtr capitalize(Budget& budget, const Text& text) {
  return map_chars(budget, text, [&](int32_t c, size_t at) {
    return at == 0 ? to_title(c) : lower_at(text, c, at);
  });
}
TextPtr title(Budget& budget, const Text& text) {
  bool in_word = false;
  return map_chars(budget, text, [&](int32_t c, size_t at) {
    const bool begins = !in_word;
    in_word = is_cased(c);
    return begins ? to_title(c) : lower_at(text, c, at);
  });
}
TextPtr title_words(Budget& budget, const Text& text) {
  bool begins = true;
  return map_chars(budget, text, [&](int32_t c, size_t at) {
    const bool parts = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    const bool begins_here = begins && !parts;
    begins = parts;
    return begins_here ? to_upper(c) : lower_at(text, c, at);
  });
}

bool is_in_case(const Text& text, bool upper_case) {
  bool any = false;
  for (size_t at = 0; at < text.bytes().size(); at += char_bytes(text.bytes()[at])) {
    const int32_t c = decode_char(text.bytes(), at);
    if (!is_cased(c)) continue;
    if (upper_case ? !is_upper(c) : !is_lower(c)) return false;
    any = true;
  }
  return any;
}

TextPtr strip(Budget& budget, const Text& text, const Text* chars, Side side) {
  const std::string_view bytes = text.bytes();
  const auto cost = [&](size_t n) { budget.charge_bytes(chars == nullptr ? n : n * 8); };
  size_t begin = 0, end = bytes.size();
  if (side != Side::right) {
    while (begin < end && strips(chars, bytes, begin)) begin += char_bytes(bytes[begin]);
  }
  if (side != Side::left) {
    while (end > begin) {
      const size_t at = char_before(bytes, end);
      if (!strips(chars, bytes, at)) break;
      end = at;
    }
  }
  cost(bytes.size() - (end - begin));
  return substring(budget, text, begin, end);
}

TextPtr replace(Budget& budget, const Text& text, const Text& from, const Text& to, int64_t count) {
  const std::string_view bytes = text.bytes();
  TextBuilder out(budget);
  size_t begin = 0;
  if (from.empty()) {  // matches before each character and at the end
    size_t at = 0;
    while (count != 0) {
      budget.charge(1);
      out.append(to);
      --count;
      if (at >= bytes.size()) break;
      out.append(text, at, at + char_bytes(bytes[at]));
      at += char_bytes(bytes[at]);
    }
    out.append(text, std::min(at, bytes.size()), bytes.size());
    return out.finish(text.markup());
  }
  for (size_t at = 0; count != 0; --count) {
    at = bytes.find(from.bytes(), begin);
    if (at == std::string_view::npos) break;
    budget.charge(1);
    out.append(text, begin, at);
    out.append(to);
    begin = at + from.bytes().size();
  }
  budget.charge_bytes(bytes.size());
  out.append(text, begin, bytes.size());
  return out.finish(text.markup());
}

std::vector<TextPtr> split(Budget& budget, const Text& text, const Text* separator,
                           int64_t max_split, bool from_right) {
  if (separator != nullptr && separator->empty()) {
    fail(ErrorCode::kUsage, "split() by an empty separator");
  }
  budget.charge_bytes(text.bytes().size());
  const std::vector<Piece> pieces =
      separator != nullptr
          ? split_at(budget, text.bytes(), separator->bytes(), max_split, from_right)
      : from_right ? split_at_space_from_right(budget, text.bytes(), max_split)
                   : split_at_space(budget, text.bytes(), max_split);
  std::vector<TextPtr> texts;
  texts.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    texts.push_back(substring(budget, text, piece.begin, piece.end));
  }
  return texts;
}

std::vector<TextPtr> split_lines(Budget& budget, const Text& text, bool keep_ends) {
  std::vector<TextPtr> lines;
  const std::string& bytes = text.bytes();
  budget.charge_bytes(bytes.size());
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const int32_t c = decode_char(bytes, at);
    const bool ends = (c >= 0xa && c <= 0xd) || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    size_t next = at + char_bytes(bytes[at]);
    if (c == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
    if (ends) {
      budget.charge(1);
      lines.push_back(substring(budget, text, begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(substring(budget, text, begin, bytes.size()));
  return lines;
}

TextPtr pad(Budget& budget, const Text& text, int64_t width, std::string_view fill, bool left,
            bool right) {
  const int64_t missing = std::max<int64_t>(width - text.size(), 0);
  budget.charge_text(missing);
  budget.charge(missing / 16);
  // If the padding is odd, Python's center() puts the extra character to the left for odd widths.
  const int64_t before = left && right ? missing / 2 + (missing & width & 1) : left ? missing : 0;
  TextBuilder out(budget);
  for (int64_t i = 0; i < before; ++i) out.append(fill);
  out.append(text);
  for (int64_t i = before; i < missing; ++i) out.append(fill);
  return out.finish(text.markup());
}

}  // namespace snapkv::jinja
