// SPDX-License-Identifier: MIT
// What the tests of chat templates share: files, and rendering by a clock that stands still.
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

/// 2024-07-26 10:00:00 UTC, the time of the golden files; strftime_now() shows local time.
constexpr std::time_t kNow = 1721988000;
inline void use_utc() {
  setenv("TZ", "UTC", 1);
  tzset();
}

inline RenderedChat render(const std::string& source, const std::string& variables = "{}") {
  return ChatTemplate::parse(source, "test").render(variables, kNow);
}

}  // namespace snapkv::test
