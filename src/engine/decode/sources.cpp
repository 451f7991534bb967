// SPDX-License-Identifier: MIT
#include "snapkv/sources.h"

#include <algorithm>
#include <string>
#include <utility>

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

/// Where the sentence that begins at `begin` ends; some place more than kLongestSentence after
/// `begin` if it is longer than that. It reads no further, so that a text without sentences, such
/// as a log, is split in linear time.
size_t sentence_end(std::string_view text, size_t begin) {
  const size_t longest = begin + kLongestSentence;
  size_t i = begin;
  while (i < text.size() && i <= longest) {
    // 4 more bytes: a mark that ends later than `longest`
    const std::string_view rest = text.substr(i, longest + 4 - i);
    size_t n = length_of_any(rest, {"。", "！", "？"});
    if (n > 0) return i + n;
    n = end_mark(rest);
    const bool ends = n > 0 && (i + n == text.size() || is_blank(text[i + n]));
    if (ends && i + n - begin >= kShortestSentence) return i + n;
    if (text[i] == '\n' && begins_anew(text.substr(i + 1)) && i > begin) return i;
    i += std::max<size_t>(n, 1);
  }
  return i;
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
  /// The token that the byte belongs to.
  size_t token_at(size_t byte) const {
    return std::upper_bound(begins.begin(), begins.end(), byte) - begins.begin() - 1;
  }
  std::string text;
  std::vector<size_t> begins;
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// Drops the sentences that are not sources; the others stay in their order.
void keep_strongest(const SourceOptions& options, std::vector<SourcePassage>& sources) {
  float most = options.least;
  for (const SourcePassage& source : sources) most = std::max(most, source.attention);
  std::erase_if(sources, [&](const SourcePassage& s) {
    return s.attention < options.share * most || s.attention < options.least;
  });
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& x, const auto& y) { return x.attention > y.attention; });
  if (sources.size() > options.most) sources.resize(options.most);
  std::sort(sources.begin(), sources.end(), [](const auto& x, const auto& y) {
    return std::pair(x.document, x.begin) < std::pair(y.document, y.begin);
  });
}

}  // namespace

std::string_view text_before_question(std::string_view message) {
  const size_t question = message.rfind("\n\n", message.find_last_not_of('\n'));
  return message.substr(0, question == std::string_view::npos ? 0 : question);
}

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
                                        std::span<const float> attention,
                                        std::span<const std::string_view> documents,
                                        const SourceOptions& options) {
  if (attention.empty()) return {};
  if (attention.size() < tokens.size()) {
    fail(ErrorCode::kUsage, "find_sources: {} tokens and the attention to {}", tokens.size(),
         attention.size());
  }
  attention = attention.last(tokens.size());
  const SpelledTokens spelled(model, tokens);
  bool has_words = false, is_spelled = false;
  std::vector<SourcePassage> sources;
  for (size_t i = 0; i < documents.size(); ++i) {
    // templates may leave out the white space around a text
    const std::string_view words = trimmed(documents[i]);
    if (words.empty()) continue;
    has_words = true;
    const size_t at = spelled.text.find(words);
    if (at == std::string::npos) continue;
    is_spelled = true;
    const size_t first = words.data() - documents[i].data();
    size_t token = spelled.token_at(at);
    for (const ByteRange& range : split_sentences(words)) {
      SourcePassage source = {
          .document = i, .begin = first + range.begin, .end = first + range.end};
      for (; token < tokens.size() && spelled.begins[token] < at + range.end; ++token) {
        source.attention = std::max(source.attention, attention[token]);
      }
      sources.push_back(source);
    }
  }
  if (has_words && !is_spelled) {
    fail(ErrorCode::kUsage, "find_sources: the prompt's tokens do not spell the document");
  }
  keep_strongest(options, sources);
  return sources;
}

}  // namespace snapkv
