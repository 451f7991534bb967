// SPDX-License-Identifier: MIT
#include "server/json.h"

#include <fmt/core.h>

#include <vector>

#include "server/api/api_error.h"

namespace snapkv::server {
namespace {

/// What a text would take to parse, as far as can be seen before anything is built from it.
/// Whether it is valid JSON is left to the parser.
struct Extent {
  std::string excess;  // why it would take too much; empty if it is fine
  int n_parts = 0;     // strings, arrays and objects
  size_t n_commas = 0;
};

Extent extent_of(std::string_view text) {
  std::vector<int> commas;  // commas of each open array or object
  Extent extent;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if ((c == '"' || c == '{' || c == '[') && ++extent.n_parts > kMostJsonParts) {
      extent.excess = fmt::format("has more than {} strings, arrays and objects", kMostJsonParts);
      break;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') {
      if (commas.size() == static_cast<size_t>(kMostJsonDepth)) {
        extent.excess = fmt::format("is nested deeper than {} levels", kMostJsonDepth);
        break;
      }
      // arrays may have any number of elements, such as the tokens of a prompt
      commas.push_back(c == '{' ? 0 : std::numeric_limits<int>::min());
    } else if ((c == '}' || c == ']') && !commas.empty()) {
      commas.pop_back();
    } else if (c == ',') {
      ++extent.n_commas;
      if (!commas.empty() && ++commas.back() >= kMostJsonMembers) {
        extent.excess = fmt::format("has an object with more than {} members", kMostJsonMembers);
        break;
      }
    }
  }
  return extent;
}

}  // namespace

size_t parsing_bytes(std::string_view text) {
  // measured: copies of the text in the parser, the messages, the template and the tokenizer; an
  // array's numbers while it grows; empty objects and strings with their names
  constexpr size_t kPerByte = 12, kPerComma = 48, kPerPart = 200;
  const Extent extent = extent_of(text);
  if (!extent.excess.empty()) throw bad_request("", "the body " + extent.excess);
  return kPerByte * text.size() + kPerComma * extent.n_commas +
         kPerPart * static_cast<size_t>(extent.n_parts);
}

Json parse_held(std::string_view text) {
  if (!extent_of(text).excess.empty()) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Json parse_body(std::string_view text) {
  if (const std::string what = extent_of(text).excess; !what.empty()) {
    throw bad_request("", "the body " + what);
  }
  Json body;
  try {
    body = Json::parse(text);
  } catch (const Json::exception& e) {  // a number may also be too large for a double
    throw bad_request("", fmt::format("the body is no JSON: {}", e.what()));
  }
  if (!body.is_object()) {
    throw bad_request("", fmt::format("the body must be a JSON object, not {}", kind_of(body)));
  }
  return body;
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const char* kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "a whole number";
    default:
      return "a number";
  }
}

}  // namespace snapkv::server
