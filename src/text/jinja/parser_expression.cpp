// SPDX-License-Identifier: MIT
// The parser of operators and values, from the weakest operator to the strongest:
//   a if b else c   or   and   not   == != < <= > >= in, not in   + -   ~   * / // %   **
//   - + of one value   | filter, is test   . [] ()
// The last row, except the signs, is in parser_postfix.cpp.
// As in Jinja, ~ binds tighter than +, ** is evaluated from left to right, and a sign binds tighter
// than both ** and filters.
#include <cmath>
#include <limits>
#include <optional>

#include "base/parse_number.h"
#include "text/jinja/parser_base.h"

namespace snapkv::jinja {
namespace {

std::optional<int64_t> parse_int64(const std::string& digits) {
  int base = 10;
  size_t begin = 0;
  if (digits.size() > 2 && digits[0] == '0') {
    const char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (base != 10) begin = 2;
  }
  int64_t value = 0;
  for (size_t i = begin; i < digits.size(); ++i) {
    const char c = digits[i];
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (__builtin_mul_overflow(value, int64_t{base}, &value) ||
        __builtin_add_overflow(value, int64_t{digit}, &value)) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

ExprPtr ExpressionParser::parse_expression(bool with_condition) {
  const TreeBounds::Level level(bounds_, stream_.line());
  ExprPtr node = parse_or();
  while (with_condition && stream_.is_name("if")) {
    auto condition = bounds_.make<Conditional>(stream_.take().line);
    ++conditions_;
    condition->value = within(*condition, std::move(node));
    condition->test = within(*condition, parse_or());
    if (stream_.skip_name("else")) {
      condition->otherwise = within(*condition, parse_expression());
    }
    --conditions_;
    node = std::move(condition);
  }
  return node;
}

template <typename T>
ExprPtr ExpressionParser::parse_chain(ExprPtr (ExpressionParser::*operand)(),
                                      std::initializer_list<std::string_view> ops, TokenKind kind) {
  const auto at_op = [&] {
    const Token& token = stream_.current();
    return token.kind == kind && std::find(ops.begin(), ops.end(), token.text) != ops.end();
  };
  ExprPtr first = (this->*operand)();
  if (!at_op()) return first;
  auto chain = bounds_.make<T>(stream_.line());
  chain->first = within(*chain, std::move(first));
  while (at_op()) {
    std::string op = stream_.take().text;
    chain->rest.emplace_back(std::move(op), within(*chain, (this->*operand)()));
  }
  return chain;
}

ExprPtr ExpressionParser::parse_or() {
  return parse_chain<Logic>(&ExpressionParser::parse_and, {"or"}, TokenKind::name);
}
ExprPtr ExpressionParser::parse_and() {
  return parse_chain<Logic>(&ExpressionParser::parse_not, {"and"}, TokenKind::name);
}

ExprPtr ExpressionParser::parse_not() {
  if (!stream_.is_name("not")) return parse_comparison();
  const TreeBounds::Level level(bounds_, stream_.line());
  auto node = bounds_.make<Unary>(stream_.line());
  node->op = stream_.take().text;
  node->operand = within(*node, parse_not());
  return node;
}

ExprPtr ExpressionParser::parse_comparison() {
  ExprPtr first = parse_sum();
  std::unique_ptr<Comparison> chain;
  while (true) {
    std::string op;
    const Token& token = stream_.current();
    const bool is_order = token.kind == TokenKind::op &&
                          (token.text == "==" || token.text == "!=" || token.text == "<" ||
                           token.text == "<=" || token.text == ">" || token.text == ">=");
    if (is_order || stream_.is_name("in")) {
      op = token.text;
    } else if (stream_.is_name("not") && stream_.next_one().kind == TokenKind::name &&
               stream_.next_one().text == "in") {
      stream_.take();
      op = "not in";
    } else {
      break;
    }
    if (chain == nullptr) {
      chain = bounds_.make<Comparison>(stream_.line());
      chain->first = within(*chain, std::move(first));
    }
    stream_.take();
    chain->rest.emplace_back(std::move(op), within(*chain, parse_sum()));
  }
  return chain != nullptr ? ExprPtr(std::move(chain)) : std::move(first);
}

ExprPtr ExpressionParser::parse_sum() {
  return parse_chain<Arithmetic>(&ExpressionParser::parse_concat, {"+", "-"}, TokenKind::op);
}
ExprPtr ExpressionParser::parse_concat() {
  return parse_chain<Concat>(&ExpressionParser::parse_product, {"~"}, TokenKind::op);
}
ExprPtr ExpressionParser::parse_product() {
  return parse_chain<Arithmetic>(&ExpressionParser::parse_power, {"*", "/", "//", "%"},
                                 TokenKind::op);
}
ExprPtr ExpressionParser::parse_power() {
  return parse_chain<Arithmetic>(&ExpressionParser::parse_unary_with_filters, {"**"},
                                 TokenKind::op);
}
ExprPtr ExpressionParser::parse_unary_with_filters() { return parse_unary(true); }

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  ExprPtr node;
  if (stream_.is_op("-") || stream_.is_op("+")) {
    const TreeBounds::Level level(bounds_, stream_.line());
    auto sign = bounds_.make<Unary>(stream_.line());
    sign->op = stream_.take().text;
    sign->operand = within(*sign, parse_unary(false));
    node = std::move(sign);
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::parse_primary() {
  const Token& token = stream_.current();
  if (token.kind == TokenKind::name) {
    const std::string name = token.text;
    const int line = stream_.take().line;
    if (name == "true" || name == "True") return bounds_.make<Literal>(line, Value(true));
    if (name == "false" || name == "False") return bounds_.make<Literal>(line, Value(false));
    if (name == "none" || name == "None") return bounds_.make<Literal>(line, Value(None()));
    note_read(name);
    return bounds_.make<Name>(line, name);
  }
  if (token.kind == TokenKind::string) {
    const int line = token.line;
    std::string text;
    while (stream_.is(TokenKind::string)) text += stream_.take().text;
    return bounds_.make<Literal>(line, Value::text(std::move(text)));
  }
  if (token.kind == TokenKind::integer || token.kind == TokenKind::real) return parse_number();
  if (stream_.is_op("(")) return parse_parentheses();
  if (stream_.is_op("[")) return parse_list();
  if (stream_.is_op("{")) return parse_dict();
  stream_.fail_expected("a value");
}

ExprPtr ExpressionParser::parse_number() {
  const Token token = stream_.take();
  if (token.kind == TokenKind::real) {
    return bounds_.make<Literal>(token.line, Value(read_double(token.text.c_str())));
  }
  const std::optional<int64_t> value = parse_int64(token.text);
  if (!value) {
    stream_.fail_at(token.line, fmt::format("the integer {} has more than 64 bits", token.text));
  }
  return bounds_.make<Literal>(token.line, Value(*value));
}

ExprPtr ExpressionParser::parse_parentheses() {
  const int line = stream_.take().line;
  if (stream_.is_op(")")) {
    stream_.take();
    auto empty = bounds_.make<Sequence>(line);
    empty->is_tuple = true;
    return empty;
  }
  ExprPtr node = parse_tuple();
  stream_.expect_op(")");
  return node;
}

bool ExpressionParser::at_tuple_end(std::string_view end) const {
  return stream_.is(TokenKind::variable_end) || stream_.is(TokenKind::block_end) ||
         stream_.is_op(")") || (!end.empty() && stream_.is_name(end));
}

ExprPtr ExpressionParser::parse_tuple(bool with_condition, std::string_view end) {
  const int line = stream_.line();
  ExprPtr first = parse_expression(with_condition);
  if (!stream_.is_op(",")) return first;
  auto tuple = bounds_.make<Sequence>(line);
  tuple->is_tuple = true;
  tuple->values.push_back(within(*tuple, std::move(first)));
  while (stream_.skip_op(",") && !at_tuple_end(end)) {
    tuple->values.push_back(within(*tuple, parse_expression(with_condition)));
  }
  return tuple;
}

ExprPtr ExpressionParser::parse_list() {
  auto list = bounds_.make<Sequence>(stream_.take().line);
  while (!stream_.is_op("]")) {
    if (!list->values.empty()) stream_.expect_op(",");
    if (stream_.is_op("]")) break;
    list->values.push_back(within(*list, parse_expression()));
  }
  stream_.take();
  return list;
}

ExprPtr ExpressionParser::parse_dict() {
  auto dict = bounds_.make<Mapping>(stream_.take().line);
  while (!stream_.is_op("}")) {
    if (!dict->entries.empty()) stream_.expect_op(",");
    if (stream_.is_op("}")) break;
    ExprPtr key = within(*dict, parse_expression());
    stream_.expect_op(":");
    dict->entries.emplace_back(std::move(key), within(*dict, parse_expression()));
  }
  stream_.take();
  return dict;
}

void ExpressionParser::note_read(std::string_view name) {
  for (MacroNotes& notes : macros_) {
    MacroNotes::Use* use = notes.find(name);
    if (use != nullptr && !use->set) use->read = true;
  }
}
void ExpressionParser::note_set(std::string_view name) {
  for (MacroNotes& notes : macros_) {
    if (MacroNotes::Use* use = notes.find(name)) use->set = true;
  }
}

}  // namespace snapkv::jinja
