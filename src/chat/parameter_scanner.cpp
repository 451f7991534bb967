// SPDX-License-Identifier: MIT
#include "chat/parameter_scanner.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

constexpr size_t kMostParameterName = 256;  // limit for the bytes of a name or key

std::string trimmed(const std::string& text) {
  const auto begin = std::find_if_not(text.begin(), text.end(), is_space);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), is_space);
  return {begin, end.base()};
}

}  // namespace

bool ParameterScanner::push(char c) {
  switch (state_) {
    case State::begin:
      if (text_.empty() && is_space(c)) return true;
      text_ += c;
      if (!tags_.name_begin.starts_with(text_)) return fail();
      if (text_ == tags_.name_begin) {
        text_.clear();
        state_ = State::name;
      }
      return true;
    case State::name:
      return push_name(c);
    case State::key:
      return push_key(c);
    case State::between:
      return push_between(c);
    case State::value_begin:
      return push_value_begin(c);
    case State::value:
      return push_value(c);
    case State::json:
      return push_json(c);
    default:
      return false;
  }
}

/// A name ends with its tag or, where there is none, with its line or the next tag.
bool ParameterScanner::push_name(char c) {
  const bool has_end = !tags_.name_end.empty();
  const bool ends = !has_end && (c == '<' || (c == '\n' && !trimmed(text_).empty()));
  if (!ends) {
    text_ += c;
    if (!has_end) return text_.size() <= kMostParameterName || fail();
    if (!text_.ends_with(tags_.name_end)) {
      return (c != '\n' && text_.size() <= kMostParameterName) || fail();
    }
    text_.resize(text_.size() - tags_.name_end.size());
  }
  name_ = trimmed(std::exchange(text_, {}));
  if (name_.empty()) return fail();
  has_name_ = true;
  state_ = State::between;
  return !ends || push_between(c);
}

bool ParameterScanner::push_key(char c) {
  text_ += c;
  JsonTypes types = kAllTypes;
  std::string_view end = tags_.key_end;
  if (!tags_.no_string_end.empty()) {
    types = kString;
    if (text_.ends_with(tags_.no_string_end)) {
      types = kAllTypes & ~kString;
      end = tags_.no_string_end;
    }
  }
  if (!text_.ends_with(end)) return (c != '\n' && text_.size() <= kMostParameterName) || fail();
  text_.resize(text_.size() - end.size());
  const std::string key = trimmed(std::exchange(text_, {}));
  if (key.empty()) return fail();
  begin_value(key, types);
  return true;
}

bool ParameterScanner::push_between(char c) {
  if (text_.empty() && is_space(c)) return true;
  if (text_.empty() && c == '{' && n_parameters_ == 0) {
    json_ = std::make_unique<ValueScanner>(ValueScanner::Holds::arguments, functions_);
    state_ = State::json;
    return push_json(c);
  }
  text_ += c;
  if (text_ == tags_.key_begin && !json_) {
    state_ = State::key;
  } else if (text_ == tags_.end) {
    close();
    state_ = State::complete;
  } else {
    return tags_.key_begin.starts_with(text_) || tags_.end.starts_with(text_) || fail();
  }
  text_.clear();
  return true;
}

bool ParameterScanner::push_value_begin(char c) {
  if (text_.empty() && is_space(c)) return true;
  text_ += c;
  if (!tags_.value_begin.starts_with(text_)) return fail();
  if (text_ == tags_.value_begin) {
    text_.clear();
    state_ = State::value;
  }
  return true;
}

bool ParameterScanner::push_json(char c) {
  if (!json_->push(c)) return fail();
  if (!json_->complete()) return true;
  arguments_ = json_->text();
  ++n_parameters_;
  state_ = State::between;
  return true;
}

bool ParameterScanner::push_value(char c) {
  text_ += c;
  if (c == '>' && text_.ends_with(tags_.value_end)) end_value();
  return true;
}

/// Ends the call but keeps what it has so far.
bool ParameterScanner::fail() {
  if (has_name_) close();
  state_ = State::failed;
  return false;
}

void ParameterScanner::close() {
  if (!json_) {
    arguments_ += n_parameters_ == 0 ? "{}" : "}";
  } else if (!json_->complete()) {
    arguments_ = json_->text();  // what there is of it
  }
}

void ParameterScanner::begin_value(const std::string& key, JsonTypes types) {
  const auto function = functions_.find(name_);
  types_ = types;
  if (types == kAllTypes && function != functions_.end()) {
    types_ = schema_types(parameter_schema(function->second, key), function->second);
  }
  key_ = (n_parameters_ == 0 ? "{" : ", ") + to_text(Json(key)) + ": ";
  n_shown_ = 0;
  state_ = tags_.value_begin.empty() ? State::value : State::value_begin;
  if (types_ != kString) return;
  arguments_ += key_ + '"';
  ++n_parameters_;
}

std::string_view ParameterScanner::certain_text() const {
  std::string_view text = text_;
  size_t n_held = begun_mark(text, tags_.value_end);
  if (tags_.padded) {  // the line break before the tag belongs to the format, as the first one does
    n_held = std::max(n_held, begun_mark(text, "\n" + std::string(tags_.value_end)));
  }
  text.remove_suffix(n_held);
  if (tags_.padded && text.starts_with('\n')) text.remove_prefix(1);
  return text;
}

void ParameterScanner::show_text(std::string_view text) {
  if (text.size() <= n_shown_) return;
  append_escaped(arguments_, text.substr(n_shown_));
  n_shown_ = text.size();
}

void ParameterScanner::end_value() {
  std::string_view text = text_;
  text.remove_suffix(tags_.value_end.size());
  if (tags_.padded) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
  }
  if (types_ == kString) {
    show_text(text);
    arguments_ += '"';
  } else {
    arguments_ += key_ + typed_value(std::string(text), types_);
    ++n_parameters_;
  }
  text_.clear();
  state_ = State::between;
}

void ParameterScanner::finish() {
  if (state_ == State::json) arguments_ = json_->text();
  if (state_ != State::value || types_ != kString) return;
  std::string_view text = text_;
  if (tags_.padded && text.starts_with('\n')) text.remove_prefix(1);
  show_text(text);
}

std::string ParameterScanner::take_arguments() {
  if (state_ == State::value && types_ == kString) show_text(certain_text());
  return std::exchange(arguments_, {});
}

}  // namespace snapkv::chat
