// SPDX-License-Identifier: MIT
// FormatSpec: how one value is to be shown, as in "%+6.2f" or "{:+6.2f}". Used by format.cpp.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/text.h"
#include "text/jinja/value.h"

namespace snapkv::jinja {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;   // '<', '>', '^', '=' (after the sign); 0: by the value's type
  char sign = '-';  // '-': of negative numbers only, '+', ' '
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;  // ',' or '_' between thousands
  int64_t precision = -1;
  char type = 0;  // d f s ...; 0: by the value's type
};

/// Of "{:...}". Throws for what is no specification.
FormatSpec parse_spec(const Text& spec);

/// Appends a number. Throws when its type can't be shown as `spec.type`.
void append_number(Budget& budget, const FormatSpec& spec, const Value& number, TextBuilder& out);
/// Appends a text, cut to the precision and padded.
void append_text(Budget& budget, const FormatSpec& spec, const Text& text, TextBuilder& out);

}  // namespace snapkv::jinja
