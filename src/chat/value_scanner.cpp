// SPDX-License-Identifier: MIT
#include "chat/value_scanner.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

/// The characters of JSON's numbers and words.
constexpr std::string_view kJsonWords = "0123456789+-.eEtrufalsn";

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

std::string escape(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      return fmt::format("\\u{:04x}", static_cast<int>(c));
  }
}

}  // namespace

bool ValueScanner::push(char c) {
  if (complete_) return false;
  if (quote_ != 0) return push_in_string(c);
  if (expects_brace_) {
    expects_brace_ = false;
    complete_ = levels_.empty();
    return c == '}';
  }
  if (is_space(c)) {
    text_ += c;
    return true;
  }
  awaited_.clear();
  if (c == '{' || c == '[' || (c == '(' && !is_json())) return open(c);
  if (levels_.empty()) return false;
  if (c == '}' || c == ']' || c == ')') return close(c);
  Level& level = levels_.back();
  if (c == '"' || (c == '\'' && !is_json())) {
    quote_ = c;
    escaped_ = false;
    string_begin_ = text_.size();
  } else if (is_json()) {
    if (c == ':') {
      if (!level.expects_key) return false;
      level.expects_key = false;
      if (level.is_call && is_arguments_key(key_)) awaited_ = function_;
    } else if (c == ',') {
      level.expects_key = level.closing == '}';
    } else if (level.expects_key || kJsonWords.find(c) == std::string_view::npos) {
      return false;
    }
  }
  text_ += c;
  return true;
}

bool ValueScanner::push_in_string(char c) {
  if (is_json() && is_control(c)) {
    if (escaped_) return false;
    text_ += escape(c);
    return true;
  }
  text_ += c;
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == quote_) {
    quote_ = 0;
    return end_string();
  }
  return true;
}

/// A call's object has only the members of calls, and names a function that there is.
bool ValueScanner::end_string() {
  const Level& level = levels_.back();
  if (!level.is_call) return !level.is_list;
  const Json string = Json::parse(text_.substr(string_begin_), nullptr, false);
  if (!string.is_string()) return false;
  const auto& text = string.get_ref<const std::string&>();
  if (level.expects_key) {
    key_ = text;
    return is_call_key(key_);
  }
  if (!is_name_key(key_)) return true;
  function_ = text;
  return functions_.contains(function_);
}

bool ValueScanner::open(char c) {
  const bool follows_brace = text_.ends_with('{') && levels_.back().is_call;
  if (follows_brace && c == '{' && !levels_.back().is_double) {
    levels_.back().is_double = true;
    return true;
  }
  if (levels_.size() == static_cast<size_t>(kMostJsonDepth)) return false;
  Level next{c == '{' ? '}' : c == '[' ? ']' : ')', false, false, c == '{'};
  if (holds_ == Holds::calls) {
    const bool is_outer = levels_.empty();
    next.is_list = c == '[' && (is_outer || (levels_.back().is_call && key_ == "tool_calls"));
    next.is_call = c == '{' && (is_outer || levels_.back().is_list ||
                                (levels_.back().is_call && key_ == "function"));
    if (!is_outer && levels_.back().is_list && !next.is_call) return false;
  }
  if (is_json() && !levels_.empty() && levels_.back().expects_key) return false;
  if (next.is_call) function_.clear();
  levels_.push_back(next);
  text_ += c;
  return true;
}

bool ValueScanner::close(char c) {
  if (levels_.back().closing != c) return false;
  expects_brace_ = levels_.back().is_double;
  levels_.pop_back();
  text_ += c;
  complete_ = levels_.empty() && !expects_brace_;
  return true;
}

}  // namespace snapkv::chat
