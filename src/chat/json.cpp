// SPDX-License-Identifier: MIT
#include "chat/json.h"

#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace snapkv::chat {

JsonExtent extent_of(std::string_view text) {
  std::vector<int> commas;  // commas of each open array or object
  JsonExtent extent;
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

Json parse_held(std::string_view text) {
  if (!extent_of(text).excess.empty()) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

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

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace snapkv::chat
