// SPDX-License-Identifier: MIT
#include "chat/python_calls.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

/// Each function reads one construct at the beginning of what is left.
class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : rest_(text) {}

  std::optional<std::vector<FoundCall>> calls() {
    const bool has_brackets = take('[');
    std::vector<FoundCall> all;
    do {
      auto call = read_call();
      if (!call) return std::nullopt;
      all.push_back(std::move(*call));
    } while (has_brackets && take(',') && !next_is(']'));
    if (has_brackets && !take(']')) return std::nullopt;
    skip_spaces();
    if (!rest_.empty()) return std::nullopt;
    return all;
  }

 private:
  void skip_spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kSpaces), rest_.size()));
  }
  bool next_is(char c) {
    skip_spaces();
    return rest_.starts_with(c);
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string word() {
    skip_spaces();
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_word);
    std::string read(rest_.begin(), end);
    rest_.remove_prefix(read.size());
    return read;
  }

  std::optional<FoundCall> read_call() {
    FoundCall call{word(), Json::object()};
    if (call.name.empty() || !take('(')) return std::nullopt;
    while (!next_is(')')) {
      const std::string key = word();
      if (key.empty() || !take('=') || call.arguments.contains(key)) return std::nullopt;
      Json value = read_value(0);
      if (value.is_discarded()) return std::nullopt;
      call.arguments[key] = std::move(value);
      if (call.arguments.size() > static_cast<size_t>(kMostJsonMembers)) return std::nullopt;
      if (!take(',')) break;
    }
    if (!take(')')) return std::nullopt;
    return call;
  }

  Json read_value(int nesting) {
    const Json none(Json::value_t::discarded);
    if (nesting == kMostJsonDepth) return none;
    if (next_is('"') || next_is('\'')) return read_string();
    if (take('[')) return read_list(']', nesting);
    if (take('(')) return read_list(')', nesting);
    if (take('{')) return read_dictionary(nesting);
    const std::string read = word_of_value();
    if (read == "True" || read == "true") return true;
    if (read == "False" || read == "false") return false;
    if (read == "None" || read == "null") return nullptr;
    const Json number = Json::parse(read, nullptr, false);
    return number.is_number() ? number : none;
  }

  std::string word_of_value() {
    skip_spaces();
    std::string read;
    while (!rest_.empty() && (is_word(rest_[0]) || rest_[0] == '+')) {
      read += rest_[0];
      rest_.remove_prefix(1);
    }
    return read;
  }

  Json read_list(char closing, int nesting) {
    Json list = Json::array();
    while (!next_is(closing)) {
      Json value = read_value(nesting + 1);
      if (value.is_discarded()) return value;
      list.push_back(std::move(value));
      if (!take(',')) break;
    }
    return take(closing) ? list : Json(Json::value_t::discarded);
  }

  Json read_dictionary(int nesting) {
    const Json none(Json::value_t::discarded);
    Json object = Json::object();
    while (!next_is('}')) {
      const Json key = next_is('"') || next_is('\'') ? read_string() : none;
      if (!key.is_string() || !take(':')) return none;
      Json value = read_value(nesting + 1);
      if (value.is_discarded() || object.size() == static_cast<size_t>(kMostJsonMembers)) {
        return none;
      }
      object[key.get<std::string>()] = std::move(value);
      if (!take(',')) break;
    }
    return take('}') ? object : none;
  }

  /// A string in single or double quotes; escapes are JSON's, and \'.
  Json read_string() {
    const char quote = rest_[0];
    std::string json = "\"";
    size_t i = 1;
    for (; i < rest_.size() && rest_[i] != quote; ++i) {
      const char c = rest_[i];
      if (c == '\\') {
        if (++i == rest_.size()) break;
        if (rest_[i] != '\'') json += '\\';
        json += rest_[i];
      } else if (c == '"') {
        json += "\\\"";
      } else if (c == '\n') {
        json += "\\n";
      } else if (c == '\t') {
        json += "\\t";
      } else {
        json += c;
      }
    }
    if (i >= rest_.size()) return Json(Json::value_t::discarded);
    rest_.remove_prefix(i + 1);
    return Json::parse(json + '"', nullptr, false);
  }

  std::string_view rest_;
};

}  // namespace

std::optional<std::vector<FoundCall>> python_calls(std::string_view text) {
  return PythonReader(text).calls();
}

}  // namespace snapkv::chat
