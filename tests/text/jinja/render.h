// SPDX-License-Identifier: MIT
// Helpers for the tests of chat templates: reading files, and rendering with a fixed time.
#pragma once

#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "snapkv/chat.h"

namespace snapkv::test {

using Json = nlohmann::ordered_json;

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("can't read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Json read_json(const std::string& name) {
  return Json::parse(read_bytes(std::string(SNAPKV_SOURCE_DIR) + "/tests/text/" + name));
}

/// 2024-07-26 10:00:00 UTC, the time in the golden files. strftime_now() shows local time, so the
/// tests set the time zone to UTC.
constexpr std::time_t kNow = 1721988000;
inline void use_utc() {
  setenv("TZ", "UTC", 1);
  tzset();
}

inline RenderedChat render(const std::string& source, const std::string& variables = "{}") {
  return ChatTemplate::parse(source, "test").render(variables, kNow);
}

}  // namespace snapkv::test
