// SPDX-License-Identifier: MIT
// sample_documents sample|check: the program that oracle/compare.mjs runs to compare grammars with
// ajv. It reads one JSON object per line and writes one JSON array per line:
//   sample  {"schema": ..., "n": N}         N random documents of the schema's grammar, as texts
//   check   {"schema": ..., "texts": [...]} for each text, whether the grammar allows it
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "tests/text/grammar/grammar_support.h"

namespace snapkv::test {
namespace {

using Json = nlohmann::ordered_json;

// Takes a random path through the grammar, byte by byte. It prefers ASCII and, as the text grows,
// bytes that end values.
std::string sample(GrammarMatcher matcher, std::mt19937& random) {
  std::string text;
  std::vector<uint64_t> mask;
  while (matcher.can_continue()) {
    if (matcher.is_complete() && (random() % 4 == 0 || text.size() > 100)) break;
    if (text.size() > 100000) throw std::runtime_error("no end is found: " + text.substr(0, 200));
    matcher.mask(mask);
    std::vector<int32_t> allowed, ascii, closing;
    for (int32_t id = 0; id < 256; ++id) {
      if (!bit(mask, id)) continue;
      allowed.push_back(id);
      if (id < 128) ascii.push_back(id);
      if (std::string_view("\"}]0123456789tfn").find(static_cast<char>(id)) != std::string::npos) {
        closing.push_back(id);
      }
    }
    const bool close = !closing.empty() && random() % 6 < (text.size() > 100 ? 4 : 1);
    const std::vector<int32_t>& from = close                                ? closing
                                       : !ascii.empty() && random() % 5 > 0 ? ascii
                                                                            : allowed;
    const int32_t id = from[random() % from.size()];
    text += static_cast<char>(id);
    matcher.accept(id);
  }
  return text;
}

int run(const std::string& command) {
  std::mt19937 random(11);
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line);
    const Grammar grammar = Grammar::from_json_schema(request.at("schema").dump());
    const GrammarMatcher matcher(grammar, byte_vocabulary());
    Json result = Json::array();
    if (command == "sample") {
      for (int i = 0; i < request.at("n").get<int>(); ++i)
        result.push_back(sample(matcher, random));
    } else {
      for (const Json& text : request.at("texts")) {
        result.push_back(allows(grammar, text.get<std::string>()));
      }
    }
    std::cout << result.dump() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace snapkv::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: sample_documents sample|check\n", stderr);
    return 2;
  }
  return snapkv::test::run(argv[1]);
}
