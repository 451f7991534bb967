// SPDX-License-Identifier: MIT
#include "text/grammar/gbnf_parser.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "text/grammar/gbnf_text.h"

namespace snapkv::grammar {
namespace {

class Parser : private GbnfText {
 public:
  Parser(std::string_view text, const std::string& name, const ParseLimits& limits)
      : GbnfText(text, name), name_(name), limits_(limits) {}

  RuleSet run() {
    skip_space(true);
    while (!at_end()) {
      parse_rule();
      skip_space(true);
    }
    finish();
    return std::move(result_);
  }

 private:
  int rule_number(std::string_view rule, size_t at) {
    const auto [found_rule, is_new] = numbers_.try_emplace(std::string(rule), std::ssize(numbers_));
    if (is_new) {
      if (result_.rules.size() >= limits_.n_rules) {
        reject(at, fmt::format("more than {} rules", limits_.n_rules));
      }
      result_.rules.push_back({std::string(rule), {}});
      first_use_.push_back(at);
      defined_.push_back(false);
    }
    return static_cast<int>(found_rule->second);
  }

  void parse_rule() {
    const size_t begin = at_;
    const std::string_view rule = take_name("the name of a rule");
    const int number = rule_number(rule, begin);
    const auto index = static_cast<size_t>(number);
    if (defined_[index]) reject(begin, fmt::format("the rule {} is defined twice", rule));
    defined_[index] = true;
    skip_space(false);
    if (!take("::=")) expected("::= after the name of the rule");
    skip_space(true);
    Expression body = parse_choice(0);
    result_.rules[index].body = std::move(body);
    if (!at_line_end()) {
      expected("a text in quotes, [characters], a rule's name, (, | or the end of the line");
    }
  }

  Expression parse_choice(int nesting) {
    Expression choice;
    choice.kind = Expression::Kind::choice;
    choice.children.push_back(parse_sequence(nesting));
    while (take('|')) {
      skip_space(true);
      choice.children.push_back(parse_sequence(nesting));
    }
    return choice.children.size() == 1 ? std::move(choice.children.front()) : std::move(choice);
  }

  Expression parse_sequence(int nesting) {
    Expression sequence;
    while (std::optional<Expression> item = parse_item(nesting)) {
      skip_space(nesting > 0);
      while (apply_repetition(*item)) skip_space(nesting > 0);
      sequence.children.push_back(std::move(*item));
    }
    if (sequence.children.size() != 1) return sequence;
    Expression item = std::move(sequence.children.front());
    return item;
  }

  /// Returns nothing if no item begins here.
  std::optional<Expression> parse_item(int nesting) {
    Expression item;
    const char c = peek();
    if (c == '"') {
      item.kind = Expression::Kind::literal;
      item.bytes = take_literal();
    } else if (c == '[') {
      item.kind = Expression::Kind::characters;
      item.set = take_class();
    } else if (c == '.') {
      ++at_;
      item.kind = Expression::Kind::characters;
      item.set.add(0, kMostCodePoint);
    } else if (c == '(') {
      if (nesting >= limits_.nesting) {
        reject(at_, fmt::format("more than {} parentheses inside each other", limits_.nesting));
      }
      ++at_;
      skip_space(true);
      item = parse_choice(nesting + 1);
      if (!take(')')) expected(")");
    } else if (at_name()) {
      const size_t begin = at_;
      item.kind = Expression::Kind::rule;
      item.rule = rule_number(take_name("a rule's name"), begin);
    } else if (c == '<' || c == '!') {
      reject(at_, "tokens of the vocabulary (<...>) are not supported in grammars; write the text");
    } else if (c == '*' || c == '+' || c == '?' || c == '{') {
      reject(at_, fmt::format("expected an item that {} repeats before it", c));
    } else {
      return std::nullopt;
    }
    return item;
  }

  /// If * + ? or {} follows `item`, takes it and makes `item` its repetition; else returns false.
  bool apply_repetition(Expression& item) {
    int least = 0, most = Expression::kNoLimit;
    if (take('?')) {
      most = 1;
    } else if (take('+')) {
      least = 1;
    } else if (peek() == '{') {
      parse_counts(least, most);
    } else if (!take('*')) {
      return false;
    }
    Expression repeat;
    repeat.kind = Expression::Kind::repeat;
    repeat.least = least;
    repeat.most = most;
    repeat.children.push_back(std::move(item));
    item = std::move(repeat);
    // A chain of repetitions nests like parentheses.
    int depth = 0;
    for (const Expression* e = &item; e->kind == Expression::Kind::repeat; e = &e->children[0]) {
      if (++depth > limits_.nesting) {
        reject(at_, fmt::format("more than {} repetitions of one item", limits_.nesting));
      }
    }
    return true;
  }

  void parse_counts(int& least, int& most) {
    const size_t begin = at_++;
    skip_space(false);
    least = take_count(limits_.repetition);
    skip_space(false);
    most = least;
    if (take(',')) {
      skip_space(false);
      most = peek() == '}' ? Expression::kNoLimit : take_count(limits_.repetition);
      skip_space(false);
    }
    if (!take('}')) expected("}");
    if (most != Expression::kNoLimit && most < least) {
      reject(begin, fmt::format("{{{},{}}}: the second number is below the first", least, most));
    }
  }

  void finish() {
    for (size_t i = 0; i < result_.rules.size(); ++i) {
      if (!defined_[i]) {
        reject(first_use_[i],
               fmt::format("there is no rule with the name {}", result_.rules[i].name));
      }
    }
    const auto root = numbers_.find("root");
    if (root == numbers_.end()) {
      fail(ErrorCode::kUsage, "{}: there is no rule with the name root, where a grammar begins",
           name_);
    }
    result_.root = static_cast<int>(root->second);
  }

  const std::string& name_;
  const ParseLimits& limits_;
  RuleSet result_;
  std::unordered_map<std::string, int64_t> numbers_;
  std::vector<size_t> first_use_;  // by rule
  std::vector<bool> defined_;      // by rule
};

}  // namespace

RuleSet parse_gbnf(std::string_view text, const std::string& name, const ParseLimits& limits) {
  if (text.size() > limits.n_bytes) {
    fail(ErrorCode::kUsage, "{}: {} bytes; a grammar may have {}", name, text.size(),
         limits.n_bytes);
  }
  return Parser(text, name, limits).run();
}

}  // namespace snapkv::grammar
