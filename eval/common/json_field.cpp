// SPDX-License-Identifier: MIT
#include "eval/common/json_field.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace snapkv::eval {
namespace {

// How many bytes of a wrong value a message shows.
constexpr size_t kShownBytes = 40;

std::string shown(const nlohmann::ordered_json& json) {
  std::string text =
      json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);  // ASCII
  if (text.size() <= kShownBytes) return text;
  return text.substr(0, kShownBytes) + "...";
}

}  // namespace

bool nests_too_deep(std::string_view text) {
  int level = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // the next character does not end the string
      in_string = c != '"';
    } else if (c == '[' || c == '{') {
      if (++level > kMostJsonLevels) return true;
    } else if (c == ']' || c == '}') {
      --level;
    } else {
      in_string = c == '"';
    }
  }
  return false;
}

nlohmann::ordered_json parse_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  if (nests_too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

void JsonField::fail_type(const std::string& expected) const {
  fail(ErrorCode::kUsage, "{}: {} is {}, expected {}", place_,
       path_.empty() ? "the record" : "field " + path_, shown(*json_), expected);
}

JsonField JsonField::at(std::string_view name) const {
  if (!json_->is_object()) fail_type("an object");
  const auto found = json_->find(name);
  const std::string path = (path_.empty() ? "" : path_ + ".") + std::string(name);
  if (found == json_->end()) fail(ErrorCode::kUsage, "{}: field {} is missing", place_, path);
  JsonField field(*found, place_);
  field.path_ = path;
  return field;
}

JsonField JsonField::at(int64_t index) const {
  if (index < 0 || index >= size())
    fail_type(fmt::format("an array of at least {} values", index + 1));
  JsonField field((*json_)[index], place_);
  field.path_ = fmt::format("{}[{}]", path_, index);
  return field;
}

int64_t JsonField::size() const {
  if (!json_->is_array()) fail_type("an array");
  return std::ssize(*json_);
}

double JsonField::number(double low, double high) const {
  if (!json_->is_number()) fail_type("a number");
  const double value = json_->get<double>();
  if (!(value >= low && value <= high)) {  // this includes 1e999, which is read as infinity
    fail_type(fmt::format("a number between {} and {}", low, high));
  }
  return value;
}

int64_t JsonField::integer(int64_t low, int64_t high) const {
  const bool fits =
      json_->is_number_integer() &&
      (!json_->is_number_unsigned() ||
       json_->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!fits) fail_type("a whole number");
  const int64_t value = json_->get<int64_t>();
  if (value < low || value > high) {
    fail_type(fmt::format("a whole number between {} and {}", low, high));
  }
  return value;
}

bool JsonField::is_null() const { return json_->is_null(); }

bool JsonField::boolean() const {
  if (!json_->is_boolean()) fail_type("true or false");
  return json_->get<bool>();
}

const std::string& JsonField::text() const {
  if (!json_->is_string()) fail_type("a text");
  return json_->get_ref<const std::string&>();
}

}  // namespace snapkv::eval
