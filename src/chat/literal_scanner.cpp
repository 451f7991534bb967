// SPDX-License-Identifier: MIT
#include "chat/literal_scanner.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/json.h"
#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

constexpr size_t kMostLiteralName = 256;  // limit for the bytes of a name, key or word

/// A word as JSON; what is none of JSON's is a string.
std::string word_as_json(const std::string& word) {
  if (word == "None") return "null";
  if (word == "True") return "true";
  if (word == "False") return "false";
  const Json value = Json::parse(word, nullptr, false);
  return value.is_primitive() && !value.is_discarded() ? word : to_text(Json(word));
}

}  // namespace

bool LiteralScanner::push(char c) {
  switch (state_) {
    case State::name:
      if (c == '{') {
        if (name_.empty()) return fail();
        has_name_ = true;
        return begin_value(c);
      }
      if (is_space(c) || c == '<' || name_.size() == kMostLiteralName) return fail();
      name_ += c;
      return true;
    case State::value:
      return is_space(c) || begin_value(c);
    case State::key:
      return push_key(c);
    case State::word:
      if (c != ',' && c != '}' && c != ']') {
        text_ += c;
        return text_.size() <= kMostLiteralName || fail();
      }
      return end_word() && push_next(c);
    case State::string:
      return push_string(c);
    case State::next:
      return is_space(c) || push_next(c);
    default:
      return false;
  }
}

bool LiteralScanner::begin_value(char c) {
  if (!text_.empty() || c == '<') {
    text_ += c;
    if (text_ == kQuote) {
      text_.clear();
      arguments_ += '"';
      is_key_ = false;
      state_ = State::string;
    }
    return kQuote.starts_with(text_) || fail();
  }
  if (c == '{' || c == '[') {
    if (open_.size() == static_cast<size_t>(kMostJsonDepth)) return fail();
    open_.push_back(c == '{' ? '}' : ']');
    arguments_ += c;
    is_empty_ = true;
    state_ = c == '{' ? State::key : State::value;
    return true;
  }
  if (c == ']' && is_empty_) return close(c);
  if (c == ',' || c == '}' || c == ']' || c == ':') return fail();
  is_empty_ = false;
  text_ = c;
  state_ = State::word;
  return true;
}

bool LiteralScanner::push_key(char c) {
  if (text_.empty() && is_space(c)) return true;
  if (text_.empty() && c == '}' && is_empty_) return close(c);
  if (c == ':' && !text_.starts_with('<')) {
    if (text_.empty()) return fail();
    arguments_ += to_text(Json(std::exchange(text_, {}))) + ": ";
    is_empty_ = false;
    state_ = State::value;
    return true;
  }
  text_ += c;
  if (text_ == kQuote) {
    text_.clear();
    arguments_ += '"';
    is_key_ = true;
    state_ = State::string;
    return true;
  }
  if (text_.starts_with('<')) return kQuote.starts_with(text_) || fail();
  return text_.size() <= kMostLiteralName || fail();
}

bool LiteralScanner::push_string(char c) {
  text_ += c;
  if (text_ == kQuote) {
    text_.clear();
    arguments_ += '"';
    state_ = State::next;
    return true;
  }
  const size_t n_certain = text_.size() - begun_mark(text_, kQuote);
  append_escaped(arguments_, std::string_view(text_).substr(0, n_certain));
  text_.erase(0, n_certain);
  return true;
}

bool LiteralScanner::push_next(char c) {
  if (is_key_) {
    if (c != ':') return fail();
    is_key_ = false;
    arguments_ += ": ";
    is_empty_ = false;
    state_ = State::value;
    return true;
  }
  if (c != ',') return close(c);
  arguments_ += ", ";
  is_empty_ = false;
  state_ = open_.back() == '}' ? State::key : State::value;
  return true;
}

bool LiteralScanner::end_word() {
  while (!text_.empty() && is_space(text_.back())) text_.pop_back();
  arguments_ += word_as_json(std::exchange(text_, {}));
  state_ = State::next;
  return true;
}

bool LiteralScanner::close(char c) {
  if (open_.back() != c) return fail();
  open_.pop_back();
  arguments_ += c;
  is_empty_ = false;
  state_ = open_.empty() ? State::complete : State::next;
  return true;
}

std::string LiteralScanner::take_arguments() { return std::exchange(arguments_, {}); }

}  // namespace snapkv::chat
