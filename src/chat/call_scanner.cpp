// SPDX-License-Identifier: MIT
#include "chat/call_scanner.h"

#include <nlohmann/json.hpp>

#include "chat/json.h"
#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

constexpr size_t kMostValueNesting = 200;

}  // namespace

bool CallScanner::push(char c) {
  switch (state_) {
    case State::object:
      if (is_space(c)) return true;
      if (c != '{') return fail();
      state_ = State::key_or_end;
      return true;
    case State::key_or_end:
      if (is_space(c)) return true;
      if (c == '}' && has_name_) {
        state_ = State::complete;
        return true;
      }
      if (c != '"') return fail();
      text_ = c;
      escaped_ = false;
      state_ = State::key;
      return true;
    case State::key: {
      text_ += c;
      if (escaped_ || c != '"') {
        escaped_ = !escaped_ && c == '\\';
        return true;
      }
      const Json key = Json::parse(text_, nullptr, false);
      if (!key.is_string()) return fail();
      role_ = key == "name" || key == "tool_name"         ? Role::name
              : key == "arguments" || key == "parameters" ? Role::arguments
                                                          : Role::other;
      if ((role_ == Role::name && has_name_) || (role_ == Role::arguments && has_arguments_)) {
        return fail();
      }
      state_ = State::colon;
      return true;
    }
    case State::colon:
      if (is_space(c)) return true;
      if (c != ':') return fail();
      text_.clear();
      open_.clear();
      in_string_ = escaped_ = begun_ = false;
      state_ = State::value;
      return true;
    case State::value:
      return push_value(c);
    case State::next:
      if (is_space(c)) return true;
      if (c == ',') {
        state_ = State::key_or_end;
      } else if (c == '}' && has_name_) {
        state_ = State::complete;
      } else {
        return fail();
      }
      return true;
    default:
      return false;
  }
}

bool CallScanner::push_value(char c) {
  if (!begun_) {
    if (is_space(c)) return true;
    if (role_ == Role::name && c != '"') return fail();
    if (role_ == Role::arguments && c != '"' && c != '{') return fail();
    if (c == ',' || c == '}' || c == ']' || c == ':') return fail();
    begun_ = true;
  } else if (!in_string_ && open_.empty() && (c == ',' || c == '}' || is_space(c))) {
    end_value();  // a number or a word has ended; c follows it
    return state_ != State::failed && push(c);
  }
  if (!in_string_ && (c == '{' || c == '[') && open_.size() == kMostValueNesting) return fail();
  if (!in_string_ && (c == '}' || c == ']') && (open_.empty() || open_.back() != c)) return fail();
  text_ += c;
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    open_.push_back(c == '{' ? '}' : ']');
  } else if (c == '}' || c == ']') {
    open_.pop_back();
  } else {
    if (role_ == Role::arguments && open_.empty()) return fail();
    return true;
  }
  if (!in_string_ && open_.empty()) end_value();
  return state_ != State::failed;
}

std::optional<ArgumentsStart> CallScanner::arguments_start() const {
  const bool holds_arguments = state_ == State::value && role_ == Role::arguments && has_name_;
  const bool begins = only_arguments_ ? text_ == "{" : !begun_;
  if (!holds_arguments || !begins) return std::nullopt;
  using After = ArgumentsStart::After;
  return ArgumentsStart{name_, only_arguments_ ? After::brace : After::colon};
}

void CallScanner::end_value() {
  begun_ = false;
  state_ = only_arguments_ ? State::complete : State::next;
  if (role_ == Role::name) {
    const Json name = Json::parse(text_, nullptr, false);
    if (!name.is_string()) {
      state_ = State::failed;
      return;
    }
    name_ = name.get<std::string>();
    has_name_ = true;
  } else if (role_ == Role::arguments) {
    if (text_.front() == '"') {
      const Json held = Json::parse(text_, nullptr, false);
      if (!held.is_string()) {
        state_ = State::failed;
        return;
      }
      arguments_ = held.get<std::string>();
    } else {
      arguments_ += text_.substr(n_taken_);
    }
    n_taken_ = 0;
    has_arguments_ = true;
  }
}

std::string CallScanner::take_arguments() {
  // an unfinished object is passed on too, so that a call that breaks off keeps what it has
  if (role_ == Role::arguments && begun_ && text_.front() == '{') {
    std::string part = text_.substr(n_taken_);
    n_taken_ = text_.size();
    return part;
  }
  std::string part;
  part.swap(arguments_);
  return part;
}

}  // namespace snapkv::chat
