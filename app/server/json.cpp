// SPDX-License-Identifier: MIT
#include "server/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/api/api_error.h"

namespace snapkv::server {
size_t parsing_bytes(std::string_view text) {
  // measured: copies of the text in the parser, the messages, the template and the tokenizer; an
  // array's numbers while it grows; empty objects and strings with their names
  constexpr size_t kPerByte = 12, kPerComma = 48, kPerPart = 200;
  const chat::JsonExtent extent = chat::extent_of(text);
  if (!extent.excess.empty()) throw bad_request("", "the body " + extent.excess);
  return kPerByte * text.size() + kPerComma * extent.n_commas +
         kPerPart * static_cast<size_t>(extent.n_parts);
}

Json parse_body(std::string_view text) {
  if (const std::string what = chat::extent_of(text).excess; !what.empty()) {
    throw bad_request("", "the body " + what);
  }
  Json body;
  try {
    body = Json::parse(text);
  } catch (const Json::exception& e) {  // a number may also be too large for a double
    std::string_view what = e.what();   // "[json.exception.parse_error.101] parse error at ..."
    if (what.starts_with('[')) what.remove_prefix(std::min(what.find("] "), what.size() - 2) + 2);
    throw bad_request("", fmt::format("the body is no JSON: {}", what));
  }
  if (!body.is_object()) {
    throw bad_request("", fmt::format("the body must be a JSON object, not {}", kind_of(body)));
  }
  return body;
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
