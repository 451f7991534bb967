// SPDX-License-Identifier: MIT
// FormatSpec: how a value is to be shown, as in "%+6.2f" or "{:+6.2f}".
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/text.h"
#include "text/jinja/value.h"

namespace snapkv::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;   // '<', '>', '^', '=' (after the sign); 0: depends on the value's type
  char sign = '-';  // '-': only for negative numbers, '+', ' '
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;  // ',' or '_' to separate thousands
  int64_t precision = -1;
  char type = 0;  // d f s ...; 0: depends on the value's type
};

/// Reads the specification in "{:...}". Throws if it is not valid.
FormatSpec parse_spec(const Text& spec);

/// Appends a number. Throws if its type cannot be shown as `spec.type`.
void append_number(Budget& budget, const FormatSpec& spec, const Value& number, TextBuilder& out);
/// Appends a text, cut to the precision and padded.
void append_text(Budget& budget, const FormatSpec& spec, const Text& text, TextBuilder& out);

}  // namespace snapkv::jinja
