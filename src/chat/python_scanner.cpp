// SPDX-License-Identifier: MIT
#include "chat/python_scanner.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/json.h"
#include "chat/python_calls.h"

namespace snapkv::chat {

bool PythonScanner::push(char c) {
  if (complete_ || failed_) return false;
  text_ += c;
  if (quote_ != 0) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == quote_) {
      quote_ = 0;
    }
    return true;
  }
  if (c == '(' || c == '[' || c == '{') {
    failed_ = (open_.empty() && c != '(') || open_.size() == static_cast<size_t>(kMostJsonDepth);
    open_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
  } else if (open_.empty()) {
    failed_ = c == '"' || c == '\'' || c == '\n' || c == '<' || c == ')';
  } else if (c == '"' || c == '\'') {
    quote_ = c;
  } else if (c == ')' || c == ']' || c == '}') {
    failed_ = open_.back() != c;
    open_.pop_back();
    if (!failed_ && open_.empty()) {
      auto calls = python_calls(text_);
      failed_ = !calls || calls->size() != 1;
      complete_ = !failed_;
      if (complete_) {
        name_ = calls->front().name;
        arguments_ = to_text(calls->front().arguments);
      }
    }
  }
  return !failed_;
}

std::string PythonScanner::take_arguments() { return std::exchange(arguments_, {}); }

}  // namespace snapkv::chat
