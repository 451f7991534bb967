// SPDX-License-Identifier: MIT
#include "text/added_tokens.h"

#include <algorithm>
#include <unordered_map>

#include "base/utf8.h"
#include "text/unicode.h"

namespace snapkv {
namespace {

/// The code point before byte `at`; -1 at the beginning.
int64_t code_point_before(std::string_view text, size_t at) {
  if (at == 0) return -1;
  size_t begin = at - 1;
  while (begin > 0 && (text[begin] & 0xc0) == 0x80) --begin;
  return utf8::code_point(text.data() + begin, at - begin);
}

int64_t code_point_at(std::string_view text, size_t at) {
  if (at >= text.size()) return -1;
  return utf8::code_point(text.data() + at, utf8::length_by_lead(text[at]));
}

bool is_word_character(int64_t c) {
  return c >= 0 && unicode::is_word_character(static_cast<uint32_t>(c));
}
bool is_space(int64_t c) { return c >= 0 && unicode::is_white_space(static_cast<uint32_t>(c)); }

bool overlaps(std::span<const ByteRange> ranges, size_t begin, size_t end) {
  const auto first = std::partition_point(ranges.begin(), ranges.end(),
                                          [&](const ByteRange& r) { return r.end <= begin; });
  return first != ranges.end() && first->begin < end;
}

size_t utf8_size(int64_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

}  // namespace

AddedTokens::AddedTokens(std::vector<std::pair<std::string, AddedToken>> tokens)
    : tokens_(std::move(tokens)) {
  // If several tokens are normalized to the same text, the last one counts.
  std::unordered_map<std::string_view, int32_t> places;
  for (int32_t i = 0; i < std::ssize(tokens_); ++i) {
    if (!tokens_[i].first.empty()) places[tokens_[i].first] = i;
  }
  std::vector<TokenMatcher::Entry> entries;
  for (const auto& [text, place] : places) entries.push_back({text, place});
  matcher_ = TokenMatcher(std::move(entries));
}

std::vector<AddedTokens::Section> AddedTokens::split(std::string_view text, bool parse_special,
                                                     std::span<const ByteRange> plain) const {
  std::vector<Section> sections;
  const auto places = matcher_.find(text);
  size_t done = 0;    // bytes already in sections
  size_t search = 0;  // where the next match may begin
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (place->begin < search) continue;
    size_t begin = place->begin;
    auto found = matcher_.longest(place->node, text.size() - begin);
    while (found.length > 0 && tokens_[found.id].second.special &&
           overlaps(plain, begin, begin + found.length)) {
      found = matcher_.longest(place->node, found.length - 1);
    }
    if (found.length == 0) continue;  // plain bytes here must not hide a token that begins in them
    size_t end = begin + found.length;
    search = end;
    const AddedToken& token = tokens_[found.id].second;
    if (token.special && !parse_special) continue;
    if (token.single_word && (is_word_character(code_point_before(text, begin)) ||
                              is_word_character(code_point_at(text, end)))) {
      continue;
    }
    if (token.lstrip) {
      for (int64_t c = 0; begin > done && is_space(c = code_point_before(text, begin));) {
        begin -= utf8_size(c);
      }
    }
    if (token.rstrip) {
      for (int64_t c = 0; is_space(c = code_point_at(text, end));) end += utf8_size(c);
    }
    if (begin > done) sections.push_back({-1, text.substr(done, begin - done)});
    sections.push_back({token.id, {}});
    done = std::max(done, end);
  }
  if (done < text.size()) sections.push_back({-1, text.substr(done)});
  return sections;
}

}  // namespace snapkv
