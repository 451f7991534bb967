// SPDX-License-Identifier: MIT
// The lexer: a template's text as tokens, with the white space around tags dropped as Jinja does
// with trim_blocks and lstrip_blocks, which is how transformers renders chat templates:
//   - the newline right after a statement `%}` or comment `#}` is dropped, unless it ends in `+%}`;
//   - so are blanks between the start of a line and a statement or comment, unless it begins `{%+`;
//   - `-` at either end of any tag drops all white space on that side;
//   - one newline at the end of the template is dropped.
// Called by the parser.
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
  int line;          // of its first character, from 1
  std::string text;  // data and strings as they are to be shown; numbers as written
};

/// Throws Error{kUsage} "line N: ...". `source` is valid UTF-8.
std::vector<Token> tokenize(std::string_view source);

/// "name 'x'", "end of the template": for messages.
std::string describe(const Token& token);

}  // namespace snapkv::jinja
