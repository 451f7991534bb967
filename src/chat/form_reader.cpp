// SPDX-License-Identifier: MIT
#include "chat/form_reader.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "chat/call_syntax.h"
#include "chat/python_calls.h"
#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

bool is_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool begins_name(const Functions& functions, const std::string& text) {
  const auto next = functions.lower_bound(text);
  return next != functions.end() && next->first.starts_with(text);
}

}  // namespace

bool FormReader::push(char c) {
  if (closed_) return false;
  switch (state_) {
    case State::between:
      return push_between(c);
    case State::bracket:
      return push_bracket(c);
    case State::python_name:
    case State::name:
      return push_name(c);
    case State::after_name:
      return push_after_name(c);
    case State::value:
      return push_value(c);
    case State::parameters:
      return push_parameters(c);
  }
  return false;
}

std::optional<ArgumentsStart> FormReader::arguments_start() const {
  if (state_ != State::value) return std::nullopt;
  if (holds_ == ValueScanner::Holds::arguments) {
    if (value_->text() != "{") return std::nullopt;
    return ArgumentsStart{name_, ArgumentsStart::After::brace};
  }
  const std::string& function = value_->awaits_arguments_of();
  if (function.empty()) return std::nullopt;
  return ArgumentsStart{function, ArgumentsStart::After::colon};
}

void FormReader::finish() {
  if (state_ == State::between) rest_.clear();  // a mark that is not complete
}

bool FormReader::push_mark(char c, bool (FormReader::*other)(char c)) {
  const auto marks = state_ == State::between ? form_.marks : form_.name_marks;
  std::string text = rest_ + c;
  const bool begins = std::any_of(marks.begin(), marks.end(),
                                  [&](std::string_view mark) { return mark.starts_with(text); });
  if (begins) {
    rest_ = std::move(text);
    const bool is_mark = std::find(marks.begin(), marks.end(), rest_) != marks.end();
    if (is_mark) n_mark_ = rest_.size();
    closed_ = is_mark && form_.ends_at_mark && !calls_.empty();
    if (closed_) rest_.clear();
    return true;
  }
  text.erase(0, n_mark_);  // what follows a mark is read from the beginning
  const bool has_begun = std::exchange(n_mark_, 0) == 0;
  rest_.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 0 && has_begun ? (this->*other)(text[i]) : push(text[i])) continue;
    rest_ += text.substr(i, text.size() - 1 - i);
    return false;
  }
  return true;
}

bool FormReader::push_between(char c) {
  // a brace too many is a slip of models that double the outer ones
  const bool is_separator = is_space(c) || (!calls_.empty() && (c == ',' || c == ';' || c == '}'));
  if (rest_.empty() && is_separator) return true;
  return push_mark(c, &FormReader::begin_call);
}

bool FormReader::push_after_name(char c) {
  if (rest_.empty() && is_space(c)) return true;
  return push_mark(c, &FormReader::begin_arguments);
}

bool FormReader::begin_call(char c) {
  name_ = c;
  if (c == '{') return begin_value(ValueScanner::Holds::calls, name_);
  if (c == '[') {
    state_ = State::bracket;
    return true;
  }
  if (!form_.has_names || !begins_name(functions_, name_)) return false;
  state_ = State::name;
  return true;
}

bool FormReader::push_bracket(char c) {
  if (is_space(c)) return true;
  if (c == '{') return begin_value(ValueScanner::Holds::calls, "[{");
  name_ = c;
  state_ = State::python_name;
  return begins_name(functions_, name_);
}

bool FormReader::push_name(char c) {
  if (is_name_byte(c)) {
    name_ += c;
    return begins_name(functions_, name_);
  }
  if (!functions_.contains(name_)) return false;
  if (state_ == State::python_name) {
    return c == '(' && begin_value(ValueScanner::Holds::python, "[" + name_ + "(");
  }
  state_ = State::after_name;
  return push_after_name(c);
}

bool FormReader::begin_arguments(char c) {
  if (c == '{') return begin_value(ValueScanner::Holds::arguments, "{");
  const ParameterTags& tags = find_syntax(ToolFormat::coder)->tags;
  if (form_.opening != tags.name_begin || c != '<') return false;
  parameters_ = std::make_unique<ParameterScanner>(functions_, tags);
  state_ = State::parameters;
  for (const char each : std::string(tags.name_begin) + name_ + std::string(tags.name_end)) {
    (void)parameters_->push(each);
  }
  return push_parameters(c);
}

bool FormReader::push_parameters(char c) {
  if (!parameters_->push(c)) return false;
  if (!parameters_->complete()) return true;
  const std::string text = parameters_->take_arguments();
  Json arguments = parse_held(text.empty() ? "{}" : text);
  if (!arguments.is_object()) return false;
  std::vector<FoundCall> calls;
  calls.push_back({name_, std::move(arguments)});
  return add(std::move(calls));
}

bool FormReader::begin_value(ValueScanner::Holds holds, const std::string& begun) {
  holds_ = holds;
  value_ = std::make_unique<ValueScanner>(holds, functions_);
  state_ = State::value;
  return std::all_of(begun.begin(), begun.end(), [&](char c) { return value_->push(c); });
}

bool FormReader::push_value(char c) {
  return value_->push(c) && (!value_->complete() || end_value());
}

bool FormReader::end_value() {
  const std::string& text = value_->text();
  std::optional<std::vector<FoundCall>> calls;
  if (holds_ == ValueScanner::Holds::python) {
    calls = python_calls(text);
  } else {
    Json value = parse_held(text);
    if (value.is_discarded()) return false;
    if (holds_ == ValueScanner::Holds::calls) {
      calls = calls_in(value, functions_);
    } else {
      calls = {{name_, std::move(value)}};
    }
  }
  return calls && add(std::move(*calls));
}

bool FormReader::add(std::vector<FoundCall> calls) {
  for (FoundCall& call : calls) {
    if (!is_call(call, functions_)) return false;
    calls_.push_back(std::move(call));
  }
  state_ = State::between;
  return true;
}

}  // namespace snapkv::chat
