// SPDX-License-Identifier: MIT
// Questions about a text's own content: strings that occur once, and sentences to continue.
#include <algorithm>
#include <cctype>

#include "eval/make_qa/kinds.h"
#include "eval/make_qa/sentences.h"

namespace snapkv::eval {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f\v";

// A word between white space; `core` is without the punctuation around it.
struct TextWord {
  size_t begin = 0, end = 0, core_begin = 0, core_end = 0;
  bool starts_paragraph = false, starts_sentence = false;
};

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }
bool is_number_sign(char c) { return c >= '0' && c <= '9'; }
bool is_name_sign(char c) { return is_upper(c) || is_lower(c) || is_number_sign(c) || c == '_'; }

std::vector<TextWord> words_of(std::string_view text) {
  std::vector<TextWord> words;
  bool after_end = true;
  for (size_t end = 0, begin = 0;; end = words.back().end) {
    begin = text.find_first_not_of(kSpaces, end);
    if (begin == std::string_view::npos) return words;
    TextWord word;
    word.begin = begin;
    word.end = std::min(text.find_first_of(kSpaces, begin), text.size());
    const std::string_view space = text.substr(end, begin - end);
    word.starts_paragraph = words.empty() || std::count(space.begin(), space.end(), '\n') > 1;
    word.starts_sentence = word.starts_paragraph || after_end;
    // Letters of other alphabets can be part of names too.
    const auto is_core = [&](size_t i) {
      return is_name_sign(text[i]) || static_cast<unsigned char>(text[i]) >= 0x80;
    };
    word.core_begin = word.begin;
    while (word.core_begin < word.end && !is_core(word.core_begin)) ++word.core_begin;
    word.core_end = word.end;
    while (word.core_end > word.core_begin && !is_core(word.core_end - 1)) --word.core_end;
    after_end = text.substr(word.core_end, word.end - word.core_end).find_first_of(".!?:;") !=
                std::string_view::npos;
    words.push_back(word);
  }
}

bool is_long_number(std::string_view core) {
  return std::count_if(core.begin(), core.end(), is_number_sign) >= 3 &&
         core.find_first_not_of("0123456789,.") == std::string_view::npos;
}

// Whether this looks like snake_case, camelCase or utf8.
bool is_identifier(std::string_view core) {
  if (core.size() < 4 || is_number_sign(core[0]) ||
      !std::all_of(core.begin(), core.end(), is_name_sign)) {
    return false;
  }
  if (core.find('_', 1) < core.size() - 1) return true;
  for (size_t i = 1; i < core.size(); ++i) {
    if (is_lower(core[i - 1]) && (is_upper(core[i]) || is_number_sign(core[i]))) return true;
  }
  return false;
}

// Whether the word is like "Ahab", with no punctuation inside or before it.
bool is_name_part(std::string_view text, const TextWord& word) {
  const std::string_view core = text.substr(word.core_begin, word.core_end - word.core_begin);
  return core.size() > 1 && word.core_begin == word.begin && is_upper(core[0]) &&
         std::all_of(core.begin() + 1, core.end(), is_lower);
}

// The word after a name of two to four words that begins at `first`; `first` if there is none. The
// first word of a sentence is not accepted, since it is written like a name.
size_t end_of_name(std::string_view text, const std::vector<TextWord>& words, size_t first) {
  const auto is_part = [&](size_t i) {
    return i < words.size() && !words[i].starts_sentence && is_name_part(text, words[i]);
  };
  if (first > 0 && is_part(first - 1) && words[first - 1].core_end == words[first - 1].end) {
    return first;
  }
  size_t end = first;
  bool goes_on = true;  // whether there is no comma after the last word
  while (goes_on && end < first + 4 && is_part(end)) {
    goes_on = words[end].core_end == words[end].end;
    ++end;
  }
  return end >= first + 2 && !(goes_on && is_part(end)) ? end : first;
}

// The same for a text of two to eight words in double quotes.
size_t end_of_quote(std::string_view text, const std::vector<TextWord>& words, size_t first) {
  const auto holds = [&](const TextWord& word, std::string_view mark) {
    return text.substr(word.begin, word.end - word.begin).find(mark) != std::string_view::npos;
  };
  const std::string_view word = text.substr(words[first].begin);
  if (!word.starts_with('"')) return first;
  for (size_t end = first; end < std::min(first + 8, words.size()); ++end) {
    if (end > first && words[end].starts_paragraph) return first;
    const std::string_view tail =
        text.substr(words[end].core_end, words[end].end - words[end].core_end);
    if (tail.find('"') != std::string_view::npos) return end > first ? end + 1 : first;
    if (end > first && holds(words[end], "\"")) return first;
  }
  return first;
}

// The word after a string that begins at `first` and can be asked for; `first` if there is none.
size_t end_of_string(std::string_view text, const std::vector<TextWord>& words, size_t first) {
  const TextWord& word = words[first];
  const std::string_view core = text.substr(word.core_begin, word.core_end - word.core_begin);
  if (is_long_number(core) || is_identifier(core)) return first + 1;
  const size_t end = end_of_name(text, words, first);
  return end > first ? end : end_of_quote(text, words, first);
}

// The fewest words, 6 to 10, before `word` that occur only once; empty if there are none.
std::string words_before(std::string_view text, const std::vector<TextWord>& words, size_t word,
                         const WordIndex& index) {
  constexpr size_t kFewest = 6, kMost = 10;
  for (size_t n = 1; n <= std::min(kMost, word); ++n) {
    if (words[word - n + 1].starts_paragraph) return "";
    const TextWord& first = words[word - n];
    const std::string found =
        single_spaced(text.substr(first.begin, words[word - 1].end - first.begin));
    if (found.find_first_of("\"|") != std::string::npos) return "";  // it gets quoted; | is a table
    if (n >= kFewest && index.count(found) == 1) return found;
  }
  return "";
}

}  // namespace

MadeContext make_unique(const SourceText& source, int64_t n, Random& random) {
  const std::string_view text = source.text;
  const WordIndex index(text);
  const std::vector<TextWord> words = words_of(text);
  std::vector<MadeQuestion> all;
  for (size_t first = 0; first < words.size(); ++first) {
    const size_t end = end_of_string(text, words, first);
    if (end == first) continue;
    const size_t at = words[first].core_begin;
    const std::string answer = single_spaced(text.substr(at, words[end - 1].core_end - at));
    if (index.count(answer) != 1) continue;
    const std::string before = words_before(text, words, first, index);
    if (before.empty()) continue;
    all.push_back({at, "Which words come after \"" + before + "\"?", before, {answer}});
  }
  return {"", choose_questions(source.text, index, std::move(all), n, random)};
}

MadeContext make_continue(const SourceText& source, int64_t n, Random& random) {
  constexpr size_t kFewest = 12, kMost = 30, kAnswer = 5;
  if (source.is_code) return {};
  const std::string_view text = source.text;
  const WordIndex index(text);
  std::vector<MadeQuestion> all;
  bool is_whole = true;
  for (const Sentence& sentence : split_sentences(text, false)) {
    const bool begins = is_whole;
    is_whole = sentence.after == SentenceEnd::sentence || sentence.after == SentenceEnd::paragraph;
    if (!begins || !is_whole || sentence.end * 10 > text.size() * 9) continue;
    const std::string_view whole = text.substr(sentence.begin, sentence.end - sentence.begin);
    const std::vector<TextWord> words = words_of(whole);
    if (words.size() < kFewest || words.size() > kMost ||
        whole.substr(words.back().core_end).find_first_of(".!?") == std::string_view::npos) {
      continue;
    }
    const size_t half = words.size() / 2;
    const std::string prefix = single_spaced(whole.substr(0, words[half - 1].end));
    if (index.count(prefix) != 1) continue;
    const size_t at = words[half].begin;
    const TextWord& last = words[std::min(half + kAnswer, words.size()) - 1];
    const std::string answer = single_spaced(whole.substr(at, last.core_end - at));
    all.push_back({sentence.begin + at, "Continue this sentence of the text.", prefix, {answer}});
  }
  return {"", choose_questions(source.text, index, std::move(all), n, random)};
}

}  // namespace snapkv::eval
