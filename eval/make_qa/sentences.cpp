// SPDX-License-Identifier: MIT
#include "eval/make_qa/sentences.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "eval/common/characters.h"

namespace snapkv::eval {
namespace {

constexpr size_t kLongestSentence = 400;

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

size_t skip_space(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kSpace, at), text.size());
}

// The place after the quotes and brackets that close at `at`.
size_t skip_closers(std::string_view text, size_t at) {
  constexpr std::string_view kClosers[] = {"\"", "'", ")", "]", "\u201d", "\u2019"};
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view closer : kClosers) {
      if (!text.substr(at).starts_with(closer)) continue;
      at += closer.size();
      found = true;
    }
  }
  return at;
}

// Whether the full stop at `dot` belongs to its word: "Mr.", "e.g.", "J.", "12.".
bool is_abbreviation(std::string_view text, size_t begin, size_t dot) {
  constexpr std::string_view kWords[] = {"Mr",  "Mrs", "Ms",   "Dr",  "St",  "vs", "No",    "Prof",
                                         "Gen", "Col", "Capt", "Fig", "est", "ca", "Messrs"};
  size_t first = dot;
  while (first > begin && (is_letter_or_digit(text[first - 1]) || text[first - 1] == '.')) --first;
  const std::string_view word = text.substr(first, dot - first);
  if (word.empty()) return false;
  if (word.size() == 1 || std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords))
    return true;
  const bool starts_text = first == begin;
  const bool is_number = word.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_number ? starts_text : word.find('.') != std::string_view::npos;
}

// Whether the white space at `at` contains an empty line.
bool ends_paragraph(std::string_view text, size_t at) {
  const size_t end = skip_space(text, at);
  return end == text.size() || std::count(text.begin() + static_cast<int64_t>(at),
                                          text.begin() + static_cast<int64_t>(end), '\n') > 1;
}

// Cuts the sentence that begins at `begin` and is too long.
Sentence cut_sentence(std::string_view text, size_t begin) {
  const std::string_view part = text.substr(begin, kLongestSentence);
  const auto sentence = [&](size_t end, SentenceEnd after) {
    while (end > 0 && is_space(part[end - 1])) --end;
    return Sentence{begin, begin + end, after};
  };
  const size_t line = part.find_last_of('\n');
  if (line != std::string_view::npos && line > 0) return sentence(line, SentenceEnd::line);
  const size_t space = part.find_last_of(kSpace);
  if (space != std::string_view::npos && space > 0) return sentence(space, SentenceEnd::inside);
  size_t end = part.size();
  while (end > 1 && begin + end < text.size() &&
         (static_cast<unsigned char>(text[begin + end]) & 0xC0) == 0x80) {
    --end;
  }
  return {begin, begin + end, SentenceEnd::inside};
}

Sentence next_sentence(std::string_view text, size_t begin, bool by_lines) {
  for (size_t i = begin; i < text.size(); ++i) {
    if (i - begin >= kLongestSentence) return cut_sentence(text, begin);
    if (text[i] == '\n') {
      const bool paragraph = ends_paragraph(text, i);
      if (!paragraph && !by_lines) continue;
      size_t end = i;
      while (is_space(text[end - 1])) --end;
      return {begin, end, paragraph ? SentenceEnd::paragraph : SentenceEnd::line};
    }
    if (by_lines || (text[i] != '.' && text[i] != '!' && text[i] != '?')) continue;
    const size_t end = skip_closers(text, i + 1);
    if (end < text.size() && !is_space(text[end])) continue;
    if (ends_paragraph(text, end)) return {begin, end, SentenceEnd::paragraph};
    const size_t next = skip_space(text, end);
    if (std::islower(static_cast<unsigned char>(text[next])) != 0) continue;
    if (text[i] == '.' && is_abbreviation(text, begin, i)) continue;
    return {begin, end, SentenceEnd::sentence};
  }
  size_t end = text.size();
  while (end > begin + 1 && is_space(text[end - 1])) --end;
  return {begin, end, SentenceEnd::paragraph};
}

}  // namespace

std::vector<Sentence> split_sentences(std::string_view text, bool by_lines) {
  std::vector<Sentence> sentences;
  for (size_t at = skip_space(text, 0); at < text.size();) {
    sentences.push_back(next_sentence(text, at, by_lines));
    at = skip_space(text, sentences.back().end);
  }
  return sentences;
}

std::string single_spaced(std::string_view text) {
  std::string out;
  for (size_t at = skip_space(text, 0); at < text.size();) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    if (!out.empty()) out += ' ';
    out += text.substr(at, end - at);
    at = skip_space(text, end);
  }
  return out;
}

}  // namespace snapkv::eval
