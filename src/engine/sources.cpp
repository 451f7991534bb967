// SPDX-License-Identifier: MIT
#include "snapkv/sources.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace snapkv {
namespace {

constexpr size_t kShortestSentence = 20;  // in bytes; what is shorter ("e.g.") belongs to the next
constexpr size_t kLongestSentence = 600;
constexpr std::string_view kBlanks = " \t\r\n\f\v";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

/// The length of the first of `words` that `text` begins with; 0 if there is none.
size_t length_of_any(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

/// The length of the mark at the start of `text` that ends a sentence if a blank follows, with
/// closing quotes and brackets after it; 0 if there is none.
size_t end_mark(std::string_view text) {
  size_t n = length_of_any(text, {".", "!", "?", "…", "؟", "।"});
  if (n == 0) return 0;
  for (;;) {
    const size_t closing =
        length_of_any(text.substr(n), {"\"", "'", ")", "]", "*", "”", "’", "»", ".", "!", "?"});
    if (closing == 0) return n;
    n += closing;
  }
}

/// Whether the line that `text` begins with is empty or begins an item, a heading or a table's row.
bool begins_anew(std::string_view text) {
  const size_t word = text.find_first_not_of(" \t\r");
  if (word == std::string_view::npos || text[word] == '\n') return true;
  text.remove_prefix(word);
  if (length_of_any(text, {"- ", "* ", "#", "|", "•", "> "}) > 0) return true;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && length_of_any(text.substr(digits), {". ", ") "}) > 0;
}

/// Where the sentence that begins at `begin` ends.
size_t sentence_end(std::string_view text, size_t begin) {
  for (size_t i = begin; i < text.size();) {
    const std::string_view rest = text.substr(i);
    size_t n = length_of_any(rest, {"。", "！", "？"});
    if (n > 0) return i + n;
    n = end_mark(rest);
    const bool ends = n > 0 && (i + n == text.size() || is_blank(text[i + n]));
    if (ends && i + n - begin >= kShortestSentence) return i + n;
    if (text[i] == '\n' && begins_anew(text.substr(i + 1)) && i > begin) return i;
    i += std::max<size_t>(n, 1);
  }
  return text.size();
}

/// The end of the first part of what is too long: at the last end of a line, else at the last
/// blank, else between two characters.
size_t part_end(std::string_view text, size_t begin) {
  const std::string_view part = text.substr(begin, kLongestSentence);
  for (const std::string_view blanks : {std::string_view("\n"), kBlanks}) {
    const size_t at = part.find_last_of(blanks);
    if (at != std::string_view::npos && at >= kShortestSentence) return begin + at;
  }
  size_t end = begin + kLongestSentence;
  while (end > begin + kLongestSentence - 4 && (text[end] & 0xC0) == 0x80) --end;
  return end;
}

void add_trimmed(std::string_view text, ByteRange range, std::vector<ByteRange>& ranges) {
  while (range.begin < range.end && is_blank(text[range.begin])) ++range.begin;
  while (range.begin < range.end && is_blank(text[range.end - 1])) --range.end;
  if (range.begin < range.end) ranges.push_back(range);
}

/// The text of a prompt's tokens, and where each begins in it.
struct SpelledTokens {
  SpelledTokens(const Model& model, std::span<const int32_t> tokens) {
    begins.reserve(tokens.size());
    for (const int32_t id : tokens) {
      begins.push_back(text.size());
      text += model.piece(id, true);
    }
  }
  std::string text;
  std::vector<size_t> begins;
};

}  // namespace

std::vector<ByteRange> split_sentences(std::string_view text) {
  std::vector<ByteRange> ranges;
  for (size_t begin = 0; begin < text.size();) {
    if (is_blank(text[begin])) {
      ++begin;
      continue;
    }
    size_t end = sentence_end(text, begin);
    if (end - begin > kLongestSentence) end = part_end(text, begin);
    add_trimmed(text, {begin, end}, ranges);
    begin = end;
  }
  return ranges;
}

std::vector<SourcePassage> find_sources(const Model& model, std::span<const int32_t> tokens,
                                 std::span<const float> attention, std::string_view document,
                                 const SourceOptions& options) {
  const size_t first = document.find_first_not_of(kBlanks);
  if (first == std::string_view::npos || attention.empty()) return {};
  const std::string_view words =
      document.substr(first, document.find_last_not_of(kBlanks) + 1 - first);
  if (attention.size() < tokens.size()) {
    fail(ErrorCode::kUsage, "find_sources: {} tokens and the attention to {}", tokens.size(),
         attention.size());
  }
  const SpelledTokens spelled(model, tokens);
  const size_t at = spelled.text.find(words);
  if (at == std::string::npos) {
    fail(ErrorCode::kUsage, "find_sources: the prompt's tokens do not spell the document");
  }
  attention = attention.last(tokens.size());
  std::vector<SourcePassage> sources;
  size_t token = std::upper_bound(spelled.begins.begin(), spelled.begins.end(), at) -
                 spelled.begins.begin() - 1;
  for (const ByteRange& range : split_sentences(words)) {
    SourcePassage source = {.begin = first + range.begin, .end = first + range.end};
    for (; token < tokens.size() && spelled.begins[token] < at + range.end; ++token) {
      source.attention = std::max(source.attention, attention[token]);
    }
    sources.push_back(source);
  }
  float most = options.least;
  for (const SourcePassage& source : sources) most = std::max(most, source.attention);
  std::erase_if(sources, [&](const SourcePassage& s) {
    return s.attention < options.share * most || s.attention < options.least;
  });
  const auto by_attention = [](const SourcePassage& a, const SourcePassage& b) {
    return a.attention > b.attention;
  };
  std::stable_sort(sources.begin(), sources.end(), by_attention);
  if (sources.size() > options.most) sources.resize(options.most);
  std::sort(sources.begin(), sources.end(),
            [](const SourcePassage& a, const SourcePassage& b) { return a.begin < b.begin; });
  return sources;
}

}  // namespace snapkv
