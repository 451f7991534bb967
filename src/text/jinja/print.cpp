// SPDX-License-Identifier: MIT
// Conversion of values to text: what {{ }} prints, and Python's repr().
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/jinja/object.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace snapkv::jinja {
namespace {

void print_string_repr(const Text& text, TextBuilder& out) {
  const std::string& bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string::npos;
  const char quote = has_single && bytes.find('"') == std::string::npos ? '"' : '\'';
  const bool input = text.has_input(0, bytes.size());
  if (text.markup()) out.append("Markup(");
  out.append_as({&quote, 1}, false);
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    const int32_t c = decode_char(bytes, at);
    if (c == '\\' || c == quote) {
      out.append_as(fmt::format("\\{}", static_cast<char>(c)), input);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out.append_as(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", input);
    } else if (is_printable(c)) {
      out.append_as(std::string_view(bytes).substr(at, char_bytes(bytes[at])), input);
    } else if (c < 0x100) {
      out.append_as(fmt::format("\\x{:02x}", c), input);
    } else {
      out.append_as(c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c), input);
    }
  }
  out.append_as({&quote, 1}, false);
  if (text.markup()) out.append(")");
}

void print_items(Budget& budget, const Items& items, std::string_view open, std::string_view close,
                 TextBuilder& out) {
  out.append(open);
  for (size_t i = 0; i < items.values.size(); ++i) {
    if (i > 0) out.append(", ");
    print_repr(budget, items.values[i], out);
  }
  if (open == "(" && items.values.size() == 1) out.append(",");
  out.append(close);
}

void print_dict(Budget& budget, const Dict& dict, TextBuilder& out) {
  out.append("{");
  bool is_first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!is_first) out.append(", ");
    is_first = false;
    print_repr(budget, key, out);
    out.append(": ");
    print_repr(budget, value, out);
  }
  out.append("}");
}

}  // namespace

std::string number_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number,
                                 std::chars_format::scientific);  // the shortest exact form
  const std::string_view shortest(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = shortest.find('e');
  int exponent = 0;
  const size_t digits_begin = e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(shortest.data() + digits_begin, shortest.data() + shortest.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const int n_digits = static_cast<int>(e) - (shortest[0] == '-') - (e > 2 + (shortest[0] == '-'));
  return fmt::format("{:.{}f}", number, std::max(1, n_digits - 1 - exponent));
}

void print_repr(Budget& budget, const Value& value, TextBuilder& out) {
  const Nesting nesting(budget);
  budget.charge(1);
  if (value.is_text()) {
    print_string_repr(value.text(), out);
  } else if (value.is_undefined()) {
    out.append("Undefined");
  } else {
    print(budget, value, out);
  }
}

void print(Budget& budget, const Value& value, TextBuilder& out) {
  if (value.is_text()) {
    out.append(value.text());
  } else if (value.is_none()) {
    out.append("None");
  } else if (value.is<bool>()) {
    out.append(truth(value) ? "True" : "False");
  } else if (value.is<int64_t>()) {
    out.append(std::to_string(value.integer()));
  } else if (value.is<double>()) {
    out.append(number_repr(value.number()));
  } else if (value.is<ListPtr>()) {
    print_items(budget, *value.items(), "[", "]", out);
  } else if (value.is<TuplePtr>()) {
    print_items(budget, *value.items(), "(", ")", out);
  } else if (value.is<DictPtr>()) {
    print_dict(budget, value.dict(), out);
  } else if (const auto* object = value.object<Object>()) {
    const Nesting nesting(budget);
    object->print(budget, out);
  }
}

TextPtr to_text(Budget& budget, const Value& value) {
  if (value.is_text()) return value.text_ptr();
  TextBuilder out(budget);
  print(budget, value, out);
  return out.finish();
}

TextPtr escaped(Budget& budget, const TextPtr& text) {
  if (text->markup()) return text;
  TextBuilder out(budget);
  const std::string& bytes = text->bytes();
  budget.charge(text->size() / 4);
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    const std::string_view entity = bytes[at] == '&'    ? "&amp;"
                                    : bytes[at] == '<'  ? "&lt;"
                                    : bytes[at] == '>'  ? "&gt;"
                                    : bytes[at] == '\'' ? "&#39;"
                                    : bytes[at] == '"'  ? "&#34;"
                                                        : "";
    if (entity.empty()) continue;
    out.append(*text, begin, at);
    out.append_as(entity, text->has_input(at, at + 1));
    begin = at + 1;
  }
  out.append(*text, begin, bytes.size());
  return out.finish(true);
}

}  // namespace snapkv::jinja
