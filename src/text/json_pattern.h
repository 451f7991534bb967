// SPDX-License-Identifier: MIT
// JsonPattern: {"String": "..."} or {"Regex": "..."} of a tokenizer.json. Normalizers and
// pre-tokenizers search texts for it.
//
// Regular expressions are written for Oniguruma; on_pcre2() writes them for PCRE2 where the two
// differ. Categories are those of PCRE2's version of Unicode (14.0 in 10.42).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/json_file.h"
#include "text/regex.h"

namespace snapkv {

class JsonPattern {
 public:
  /// Throws Error{kBadModel} naming the field.
  explicit JsonPattern(const JsonField& field);
  /// A regular expression of the program's own.
  JsonPattern(std::string_view regex, const std::string& origin);
  /// A text that is not empty.
  static JsonPattern literal(std::string text);

  /// Finds the matches of one text, which is valid UTF-8, from left to right. They do not overlap.
  /// An empty one is reported unless the match before it ends there.
  class Scanner {
   public:
    Scanner(const JsonPattern& pattern, std::string_view text);
    std::optional<RegexMatch> next();

    /// Another text.
    void set_text(std::string_view text);

   private:
    const JsonPattern& pattern_;
    std::string_view text_;
    std::optional<Regex::Scanner> scanner_;
    size_t at_ = 0;                   // where the search goes on
    std::optional<size_t> last_end_;  // of the last match
  };

 private:
  JsonPattern() = default;

  std::string literal_;  // not empty, or a regex
  std::optional<Regex> regex_;
};

/// An Oniguruma expression (Ruby's syntax) as PCRE2 expects it. Throws Error{kBadModel} that begins
/// with `origin` for what PCRE2 would take to mean something else.
std::string on_pcre2(std::string_view oniguruma, const std::string& origin);

}  // namespace snapkv
