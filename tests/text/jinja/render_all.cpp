// SPDX-License-Identifier: MIT
// render_all TEMPLATES CONVERSATIONS: renders every template of a folder with every conversation of
// a JSON file, and writes {"template": {"conversation": {"text": ...} or {"error": ...}}} to
// stdout. oracle/compare.mjs runs it.
#include <filesystem>
#include <iostream>

#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

Json render_all(const std::string& folder, const Json& conversations) {
  Json all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const auto tmpl = ChatTemplate::parse(read_bytes(entry.path().string()), name);
    for (const auto& [conversation, variables] : conversations.items()) {
      Json& result = all[name][conversation];
      try {
        result["text"] = tmpl.render(variables.dump()).text;
      } catch (const Error& e) {
        result["error"] = e.what();
      }
    }
  }
  return all;
}

}  // namespace
}  // namespace snapkv::test

int main(int argc, char** argv) {
  using snapkv::test::Json;
  if (argc != 3) return 2;
  std::cout << snapkv::test::render_all(argv[1], Json::parse(snapkv::test::read_bytes(argv[2])));
  return 0;
}
