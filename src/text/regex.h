// SPDX-License-Identifier: MIT
// Regex: a PCRE2 pattern, compiled to machine code where the system allows that, with bounded time
// and memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv {

/// Bytes [begin, end) of the searched text.
struct RegexMatch {
  size_t begin = 0;
  size_t end = 0;
};

class Regex {
 public:
  enum class Alphabet {
    bytes,    // a character is a byte; \s \d are ASCII only
    unicode,  // UTF-8 with Unicode's properties; ^ and $ match at line ends, as in Oniguruma
  };

  /// `origin` tells in messages where the pattern comes from: "'tokenizer.json': pre_tokenizer".
  /// Throws Error{kBadModel} with the pattern, what is wrong with it and where.
  Regex(std::string_view pattern, Alphabet alphabet, std::string origin);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  const std::string& pattern() const;

  /// Searches texts, one after another. Belongs to one thread; the Regex must outlive it.
  class Scanner {
   public:
    explicit Scanner(const Regex& regex);
    Scanner(Scanner&&) noexcept;
    ~Scanner();

    /// Sets the text to search, which must be valid UTF-8 for Alphabet::unicode.
    void set_text(std::string_view text);
    /// The first match that begins at `from` or later. Throws Error{kRuntime} naming the pattern
    /// and the limit if the search reaches PCRE2's match limit, heap limit or JIT stack limit, or
    /// takes much longer than the text's length explains.
    std::optional<RegexMatch> find(size_t from);

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace snapkv
