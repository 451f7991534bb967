// SPDX-License-Identifier: MIT
#include "long_documents/words.h"

#include <libstemmer.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>

#include "base/check.h"

namespace snapkv::long_documents {
namespace {

/// Scripts whose words are found, or stemmed, in different ways.
enum class Script { latin, cyrillic, greek, unspaced, other };

Script script_of(int32_t c) {
  if (c < 0x250) return Script::latin;
  if (c >= 0x370 && c < 0x400) return Script::greek;
  if (c >= 0x400 && c < 0x530) return Script::cyrillic;
  const bool is_thai_or_lao = c >= 0xE00 && c < 0xF00;
  const bool is_han_or_kana = (c >= 0x3040 && c < 0x3100) || (c >= 0x3400 && c < 0xA000) ||
                              (c >= 0xF900 && c < 0xFB00) || (c >= 0x20000 && c < 0x32000);
  return is_thai_or_lao || is_han_or_kana ? Script::unspaced : Script::other;
}

bool is_word_part(int32_t c) {
  if (c == '_') return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

/// The stem of a folded word, by libstemmer (Snowball).
std::string stem(const std::string& word, Script script) {
  using Stemmer = std::unique_ptr<sb_stemmer, void (*)(sb_stemmer*)>;
  const auto make = [](const char* language) {
    return Stemmer(sb_stemmer_new(language, "UTF_8"), sb_stemmer_delete);
  };
  // not thread-safe
  thread_local const std::array<Stemmer, 3> stemmers = {make("english"), make("russian"),
                                                        make("greek")};
  static_assert(static_cast<int>(Script::latin) == 0 && static_cast<int>(Script::cyrillic) == 1 &&
                static_cast<int>(Script::greek) == 2);
  const auto i = static_cast<size_t>(script);
  if (i >= stemmers.size()) return word;
  SNAPKV_CHECK(stemmers[i] != nullptr);
  const sb_symbol* const stemmed =
      sb_stemmer_stem(stemmers[i].get(), reinterpret_cast<const sb_symbol*>(word.data()),
                      static_cast<int>(word.size()));
  SNAPKV_CHECK(stemmed != nullptr);
  return {reinterpret_cast<const char*>(stemmed),
          static_cast<size_t>(sb_stemmer_length(stemmers[i].get()))};
}

std::string utf8_of(int32_t c) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(c, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(n)};
}

/// The code points of a text, folded, with U+FFFD for bytes that are no UTF-8.
std::vector<int32_t> folded(std::string_view text) {
  constexpr auto kFold = static_cast<utf8proc_option_t>(UTF8PROC_COMPAT | UTF8PROC_COMPOSE |
                                                        UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
  std::vector<int32_t> result;
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(at, left, &c);
    if (n <= 0) {
      result.push_back(0xfffd);
      ++at, --left;
      continue;
    }
    at += n, left -= n;
    if (c < 0x80) {
      result.push_back(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
      continue;
    }
    utf8proc_int32_t parts[32];
    const utf8proc_ssize_t n_parts =
        utf8proc_decompose_char(c, parts, std::size(parts), kFold, nullptr);
    for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(n_parts, 32); ++i) {
      result.push_back(parts[i]);
    }
  }
  const utf8proc_ssize_t n =
      utf8proc_normalize_utf32(result.data(), static_cast<utf8proc_ssize_t>(result.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (n >= 0) result.resize(static_cast<size_t>(n));
  return result;
}

/// Collects characters to words.
class WordCollector {
 public:
  void add(int32_t c) {
    if (!is_word_part(c)) return end();
    const Script script = script_of(c);
    if (script == Script::unspaced) {
      if (!word_.empty() && script_ != Script::unspaced) end();
      const std::string character = utf8_of(c);
      if (!word_.empty()) words_.push_back(word_ + character);
      word_ = character;
    } else {
      if (!word_.empty() && script_ == Script::unspaced) end();
      word_ += utf8_of(c);
    }
    script_ = script;
  }
  std::vector<std::string> take() {
    end();
    return std::move(words_);
  }

 private:
  void end() {
    if (word_.empty()) return;
    // a single character of an unspaced script is a word only where it has no neighbour
    const bool is_pair = script_ == Script::unspaced && !words_.empty() &&
                         words_.back().size() > word_.size() && words_.back().ends_with(word_);
    if (!is_pair) words_.push_back(stem(word_, script_));
    word_.clear();
  }

  std::vector<std::string> words_;
  std::string word_;  // of an unspaced script: the last character
  Script script_ = Script::other;
};

constexpr std::string_view kCommonWords[] = {
    // function words of English
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "he", "she", "his", "her",
    "they", "their", "them", "we", "our", "us", "you", "your", "i", "my", "me", "who", "whom",
    "whose", "what", "which", "when", "where", "why", "how", "is", "are", "was", "were", "be",
    "been", "being", "am", "do", "does", "did", "done", "have", "has", "had", "having", "can",
    "could", "may", "might", "must", "shall", "should", "will", "would", "and", "or", "but", "nor",
    "not", "no", "if", "then", "than", "so", "as", "of", "in", "on", "at", "by", "for", "from",
    "to", "with", "without", "into", "about", "between", "over", "under", "up", "down", "out",
    "off", "there", "here", "all", "any", "each", "every", "some", "such", "only", "also", "too",
    "very", "much", "many", "more", "most", "few", "other", "another", "same", "one", "s", "t",
    "please", "tell", "give", "say", "says", "said", "mean", "means", "happen", "happens",
    // words about the document, the question and the answer
    "document", "text", "book", "pdf", "report", "article", "paper", "chapter", "page", "author",
    "describe", "described", "description", "mention", "mentioned", "explain", "explained",
    "according", "summary", "summarize", "summarise", "overview", "main", "point", "points",
    "topic", "subject", "question", "answer", "brief", "briefly", "detail", "details", "important",
    "idea", "ideas"};

}  // namespace

std::vector<std::string> index_words(std::string_view text) {
  WordCollector collector;
  for (const int32_t c : folded(text)) collector.add(c);
  return collector.take();
}

bool is_common_word(std::string_view word) {
  static const std::set<std::string, std::less<>> kStems = [] {
    std::set<std::string, std::less<>> stems;
    for (const std::string_view each : kCommonWords) {
      stems.insert(stem(std::string(each), Script::latin));
    }
    return stems;
  }();
  return kStems.contains(word);
}

}  // namespace snapkv::long_documents
