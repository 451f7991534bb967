// SPDX-License-Identifier: MIT
// The lexer: splits a template's text into tokens and drops white space around tags as Jinja does
// with trim_blocks and lstrip_blocks, which transformers uses for chat templates:
//   - the newline right after a statement `%}` or comment `#}` is dropped, unless it ends in `+%}`;
//   - blanks between the start of a line and a statement or comment are dropped, unless it begins
//     with `{%+`;
//   - `-` at either end of any tag drops all white space on that side;
//   - one newline at the end of the template is dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::jinja {

enum class TokenKind : uint8_t {
  data,            // text between tags
  variable_begin,  // {{
  variable_end,    // }}
  block_begin,     // {%
  block_end,       // %}
  name,
  integer,
  real,
  string,
  op,  // text is one of + - * / // % ** ~ == != < <= > >= = ( ) [ ] { } . , : | ;
  end,
};

struct Token {
  TokenKind kind;
  int line;          // of its first character, counted from 1
  std::string text;  // data and strings as they are to be printed; numbers as written
};

/// `source` must be valid UTF-8. Throws Error{kUsage} "line N: ...".
std::vector<Token> tokenize(std::string_view source);

/// A token for messages: "name 'x'", "end of the template".
std::string describe(const Token& token);

}  // namespace snapkv::jinja
