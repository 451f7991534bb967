// SPDX-License-Identifier: MIT
#include "chat/parameter_scanner.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

constexpr std::string_view kParameter = "<parameter=", kFunctionEnd = "</function>",
                           kValueEnd = "\n</parameter>";
constexpr size_t kMostParameterName = 256;  // limit for the bytes of a name or key

std::string trimmed(const std::string& text) {
  const auto begin = std::find_if_not(text.begin(), text.end(), is_space);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), is_space);
  return {begin, end.base()};
}

/// Appends part of a JSON string; parts may begin and end inside a character.
void append_escaped(std::string& json, std::string_view text) {
  constexpr std::string_view kSpecial = "\"\\\n\t\r\b\f", kLetters = "\"\\ntrbf";
  for (const char c : text) {
    if (const size_t i = kSpecial.find(c); i != std::string_view::npos) {
      json += '\\';
      json += kLetters[i];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += c;
    }
  }
}

}  // namespace

bool ParameterScanner::push(char c) {
  switch (state_) {
    case State::begin:
      if (text_.empty() && is_space(c)) return true;
      text_ += c;
      if (!kBegin.starts_with(text_)) return fail();
      if (text_ == kBegin) {
        text_.clear();
        state_ = State::name;
      }
      return true;
    case State::name:
    case State::key: {
      if (c != '>') {
        text_ += c;
        return (c != '\n' && text_.size() <= kMostParameterName) || fail();
      }
      const std::string read = trimmed(std::exchange(text_, {}));
      if (read.empty()) return fail();
      if (state_ == State::key) {
        begin_value(read);
        return true;
      }
      name_ = read;
      has_name_ = true;
      state_ = State::between;
      return true;
    }
    case State::between:
      return push_between(c);
    case State::value:
      return push_value(c);
    case State::json:
      return push_json(c);
    default:
      return false;
  }
}

bool ParameterScanner::push_between(char c) {
  if (text_.empty() && is_space(c)) return true;
  if (text_.empty() && c == '{' && n_parameters_ == 0) {
    json_ = std::make_unique<ValueScanner>(ValueScanner::Holds::arguments, functions_);
    state_ = State::json;
    return push_json(c);
  }
  text_ += c;
  if (text_ == kParameter && !json_) {
    state_ = State::key;
  } else if (text_ == kFunctionEnd) {
    close();
    state_ = State::complete;
  } else {
    return kParameter.starts_with(text_) || kFunctionEnd.starts_with(text_) || fail();
  }
  text_.clear();
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
  if (c == '>' && text_.ends_with(kValueEnd.substr(1))) end_value();
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

void ParameterScanner::begin_value(const std::string& key) {
  const auto function = functions_.find(name_);
  types_ = kAllTypes;
  if (function != functions_.end()) {
    types_ = schema_types(parameter_schema(function->second, key), function->second);
  }
  key_ = (n_parameters_ == 0 ? "{" : ", ") + to_text(Json(key)) + ": ";
  n_shown_ = 0;
  state_ = State::value;
  if (types_ != kString) return;
  arguments_ += key_ + '"';
  ++n_parameters_;
}

std::string_view ParameterScanner::certain_text() const {
  std::string_view text = text_;
  text.remove_suffix(std::max(begun_mark(text, kValueEnd), begun_mark(text, kValueEnd.substr(1))));
  if (text.starts_with('\n')) text.remove_prefix(1);  // the format puts a newline there
  return text;
}

void ParameterScanner::show_text(std::string_view text) {
  if (text.size() <= n_shown_) return;
  append_escaped(arguments_, text.substr(n_shown_));
  n_shown_ = text.size();
}

void ParameterScanner::end_value() {
  std::string_view text = text_;
  text.remove_suffix(kValueEnd.size() - 1);
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
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
  if (text.starts_with('\n')) text.remove_prefix(1);
  show_text(text);
}

std::string ParameterScanner::take_arguments() {
  if (state_ == State::value && types_ == kString) show_text(certain_text());
  return std::exchange(arguments_, {});
}

}  // namespace snapkv::chat
