// SPDX-License-Identifier: MIT
#include "text/special_splitter.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace snapkv {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// A token that may be cut out. The greatest candidate is cut out first.
struct Candidate {
  TokenMatcher::Found token;
  TokenMatcher::Place place;
  bool operator<(const Candidate& other) const {
    return std::make_tuple(token.length, other.token.id, other.place.begin) <
           std::make_tuple(other.token.length, token.id, place.begin);
  }
};

}  // namespace

/// Bytes [begin, end) of the text: a token and the white space around it that disappears with it.
struct SpecialSplitter::Cut {
  size_t begin;
  size_t end;
  int32_t token;
};

SpecialSplitter::SpecialSplitter(const Vocab& vocab) : vocab_(vocab) {
  std::vector<TokenMatcher::Entry> all;
  std::vector<TokenMatcher::Entry> user_defined;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string_view text = vocab.tokens[id];
    const TokenType type = vocab.types[id];
    if (text.empty()) continue;
    const bool is_user_defined = type == TokenType::kUserDefined;
    if (is_user_defined) user_defined.push_back({text, id});
    if (is_user_defined || type == TokenType::kControl || type == TokenType::kUnknown) {
      all.push_back({text, id});
    }
  }
  all_ = TokenMatcher(std::move(all));
  user_defined_ = TokenMatcher(std::move(user_defined));
}

bool SpecialSplitter::is_allowed(int32_t token, size_t begin, size_t end,
                                 std::span<const ByteRange> plain) const {
  if (plain.empty() || vocab_.types[token] == TokenType::kUserDefined) return true;
  const auto first = std::partition_point(plain.begin(), plain.end(),
                                          [&](const ByteRange& r) { return r.end <= begin; });
  return first == plain.end() || first->begin >= end;
}

std::vector<SpecialSplitter::Cut> SpecialSplitter::find_cuts(
    std::string_view text, const TokenMatcher& matcher, std::span<const ByteRange> plain) const {
  std::vector<Candidate> found;
  for (const auto& place : matcher.find(text)) {
    found.push_back({matcher.longest(place.node, text.size() - place.begin), place});
  }
  std::priority_queue<Candidate> candidates({}, std::move(found));
  std::map<size_t, Cut> cuts;  // by their begin; they do not overlap
  while (!candidates.empty()) {
    const auto [token, place] = candidates.top();
    candidates.pop();
    const auto after = cuts.upper_bound(place.begin);
    const size_t left = after == cuts.begin() ? 0 : std::prev(after)->second.end;
    const size_t right = after == cuts.end() ? text.size() : after->first;
    if (left > place.begin) continue;  // inside another cut
    const bool fits = place.begin + token.length <= right;
    if (!fits || !is_allowed(token.id, place.begin, place.begin + token.length, plain)) {
      const size_t most = fits ? token.length - 1 : right - place.begin;
      const auto shorter = matcher.longest(place.node, most);
      if (shorter.length > 0) candidates.push({shorter, place});
      continue;
    }
    Cut cut = {place.begin, place.begin + token.length, token.id};
    const TokenStrip strip = vocab_.strip_of(token.id);
    while (strip.left && cut.begin > left && is_space(text[cut.begin - 1])) --cut.begin;
    while (strip.right && cut.end < right && is_space(text[cut.end])) ++cut.end;
    cuts.emplace(cut.begin, cut);
  }
  std::vector<Cut> result;
  for (const auto& [begin, cut] : cuts) result.push_back(cut);
  return result;
}

std::vector<SpecialSplitter::Fragment> SpecialSplitter::split(
    std::string_view text, bool parse_special, std::span<const ByteRange> plain) const {
  std::vector<Fragment> fragments;
  size_t done = 0;
  for (const Cut& cut : find_cuts(text, parse_special ? all_ : user_defined_, plain)) {
    if (cut.begin > done) fragments.push_back({-1, text.substr(done, cut.begin - done)});
    fragments.push_back({cut.token, {}});
    done = cut.end;
  }
  if (done < text.size()) fragments.push_back({-1, text.substr(done)});
  return fragments;
}

}  // namespace snapkv
