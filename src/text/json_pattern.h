// SPDX-License-Identifier: MIT
// JsonPattern: {"String": "..."} or {"Regex": "..."} in a tokenizer.json, which normalizers and
// pre-tokenizers search for in texts.
//
// The regular expressions are written for Oniguruma; on_pcre2() rewrites them for PCRE2 where the
// two differ. Categories are those of PCRE2's version of Unicode (14.0 in 10.42).
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
  /// A regular expression that the program itself supplies.
  JsonPattern(std::string_view regex, const std::string& origin);
  /// The pattern that matches `text`, which is not empty.
  static JsonPattern literal(std::string text);

  /// Finds the matches in one text, which is valid UTF-8, from left to right, without overlaps. An
  /// empty match is reported unless the match before it ends there.
  class Scanner {
   public:
    Scanner(const JsonPattern& pattern, std::string_view text);
    std::optional<RegexMatch> next();

    /// Starts over with another text.
    void set_text(std::string_view text);

   private:
    const JsonPattern& pattern_;
    std::string_view text_;
    std::optional<Regex::Scanner> scanner_;
    size_t at_ = 0;                   // where the search continues
    std::optional<size_t> last_end_;  // end of the last match
  };

 private:
  JsonPattern() = default;

  std::string literal_;  // if not empty, the text to find; otherwise regex_
  std::optional<Regex> regex_;
};

/// Rewrites an Oniguruma expression (Ruby's syntax) for PCRE2. Throws Error{kBadModel} with a
/// message that begins with `origin` if PCRE2 would read a part of it differently.
std::string on_pcre2(std::string_view oniguruma, const std::string& origin);

}  // namespace snapkv
