// SPDX-License-Identifier: MIT
// The parser of what follows a value: attributes, subscripts, calls, filters and tests.
#include "text/jinja/filters.h"
#include "text/jinja/parser_base.h"
#include "text/jinja/tests.h"

namespace snapkv::jinja {

ExprPtr ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (stream_.is_op(".")) {
      node = parse_attribute(std::move(node));
    } else if (stream_.is_op("[")) {
      node = parse_subscript(std::move(node));
    } else if (stream_.is_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_attribute(ExprPtr object) {
  const int line = stream_.take().line;
  if (stream_.is(TokenKind::integer)) {  // list.0
    auto item = bounds_.make<Subscript>(line);
    item->object = within(*item, std::move(object));
    item->key = within(*item, parse_number());
    return item;
  }
  auto attribute = bounds_.make<Attribute>(line);
  attribute->object = within(*attribute, std::move(object));
  attribute->name = stream_.expect_any_name("a name or number after '.'");
  return attribute;
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const int line = stream_.take().line;
  ExprPtr key;
  if (!stream_.is_op(":")) key = parse_expression();
  if (stream_.is_op(":")) {
    auto slice = bounds_.make<Slice>(line);
    slice->object = within(*slice, std::move(object));
    slice->start = within(*slice, std::move(key));
    stream_.take();
    if (!stream_.is_op(":") && !stream_.is_op("]")) {
      slice->stop = within(*slice, parse_expression());
    }
    if (stream_.skip_op(":") && !stream_.is_op("]")) {
      slice->step = within(*slice, parse_expression());
    }
    stream_.expect_op("]");
    return slice;
  }
  auto item = bounds_.make<Subscript>(line);
  item->object = within(*item, std::move(object));
  if (stream_.is_op(",")) {
    auto tuple = bounds_.make<Sequence>(line);
    tuple->is_tuple = true;
    tuple->values.push_back(within(*tuple, std::move(key)));
    while (stream_.skip_op(",")) tuple->values.push_back(within(*tuple, parse_expression()));
    key = std::move(tuple);
  }
  item->key = within(*item, std::move(key));
  stream_.expect_op("]");
  return item;
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  auto call = bounds_.make<Call>(stream_.line());
  call->callee = within(*call, std::move(callee));
  call->arguments = parse_arguments(*call);
  return call;
}

CallArguments ExpressionParser::parse_arguments(Node& node) {
  CallArguments arguments;
  stream_.expect_op("(");
  bool is_first = true;
  while (!stream_.is_op(")")) {
    if (!is_first) stream_.expect_op(",");
    if (stream_.is_op(")")) break;
    is_first = false;
    const int line = stream_.line();
    const bool closed = arguments.double_star != nullptr;
    if (stream_.is_op("*") && arguments.star == nullptr && !closed) {
      stream_.take();
      arguments.star = within(node, parse_expression());
    } else if (stream_.is_op("**") && !closed) {
      stream_.take();
      arguments.double_star = within(node, parse_expression());
    } else if (stream_.is(TokenKind::name) && stream_.next_one().kind == TokenKind::op &&
               stream_.next_one().text == "=" && !closed) {
      std::string name = stream_.take().text;
      for (const auto& [other, value] : arguments.keyword) {
        if (other == name) stream_.fail_at(line, fmt::format("argument '{}' is given twice", name));
      }
      stream_.take();
      arguments.keyword.emplace_back(std::move(name), within(node, parse_expression()));
    } else if (arguments.keyword.empty() && arguments.star == nullptr && !closed) {
      arguments.positional.push_back(within(node, parse_expression()));
    } else {
      stream_.fail_at(line, "the arguments of a call are in the wrong order");
    }
  }
  stream_.expect_op(")");
  return arguments;
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (stream_.is_op("|")) {
      node = parse_filters(std::move(node));
    } else if (stream_.is_name("is")) {
      node = parse_test(std::move(node));
    } else if (stream_.is_op("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::parse_filters(ExprPtr node, bool inline_first) {
  while (inline_first || stream_.is_op("|")) {
    if (!inline_first) stream_.take();
    inline_first = false;
    auto filter = bounds_.make<Filter>(stream_.line());
    filter->name = stream_.expect_any_name("the name of a filter");
    while (stream_.skip_op(".")) filter->name += "." + stream_.expect_any_name("a name");
    if (find_filter(filter->name) == nullptr && conditions_ == 0) {
      stream_.fail_at(filter->line, unknown_filter(filter->name));
    }
    filter->operand = within(*filter, std::move(node));
    if (stream_.is_op("(")) filter->arguments = parse_arguments(*filter);
    node = std::move(filter);
  }
  return node;
}

ExprPtr ExpressionParser::parse_test(ExprPtr operand) {
  auto test = bounds_.make<Test>(stream_.take().line);
  const bool negated = stream_.skip_name("not");
  test->name = stream_.expect_any_name("the name of a test");
  while (stream_.skip_op(".")) test->name += "." + stream_.expect_any_name("a name");
  if (find_test(test->name) == nullptr && conditions_ == 0) {
    stream_.fail_at(test->line, unknown_test(test->name));
  }
  test->operand = within(*test, std::move(operand));
  const Token& token = stream_.current();
  const bool is_word = token.kind == TokenKind::name;
  if (is_word && token.text == "is") {
    stream_.fail_at(token.line, "tests can't be chained: 'is' after a test");
  }
  const bool ends = is_word && (token.text == "else" || token.text == "or" || token.text == "and");
  if (stream_.is_op("(")) {
    test->arguments = parse_arguments(*test);
  } else if ((is_word && !ends) || token.kind == TokenKind::string ||
             token.kind == TokenKind::integer || token.kind == TokenKind::real ||
             stream_.is_op("[") || stream_.is_op("{")) {
    test->arguments.positional.push_back(within(*test, parse_postfix(parse_primary())));
  }
  if (!negated) return test;
  auto node = bounds_.make<Unary>(test->line);
  node->op = "not";
  node->operand = within(*node, std::move(test));
  return node;
}

}  // namespace snapkv::jinja
