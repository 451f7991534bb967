// SPDX-License-Identifier: MIT
// tokenizer.json: ids and texts of Hugging Face's tokenizers for every component that is supported,
// recorded by tools/huggingface_oracle.py; what a file must have, and what is refused by name.
#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.h"

namespace snapkv {
namespace {

using Json = nlohmann::json;
using test::expect_error;
using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> make(const std::string& text, const JsonTokenizer::Config& config = {}) {
  return JsonTokenizer::make(parse_tokenizer_file(text, "the-file"), config);
}
std::unique_ptr<Tokenizer> make(const Json& json, const JsonTokenizer::Config& config = {}) {
  return make(json.dump(), config);
}

TEST(TokenizerJsonTest, IdsAndTextsOfHuggingFacesTokenizers) {
  std::ifstream in(std::string(SNAPKV_SOURCE_DIR) + "/tests/text/golden/huggingface.json");
  const Json golden = Json::parse(in);
  ASSERT_GT(golden.at("cases").size(), 20u);
  for (const Json& c : golden.at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    const auto tokenizer = make(c.at("tokenizer"));
    for (size_t i = 0; i < golden.at("texts").size(); ++i) {
      const auto text = golden.at("texts")[i].get<std::string>();
      const auto ids = c.at("ids")[i].get<Ids>();
      EXPECT_EQ(tokenizer->encode(text, true, true), ids) << i << ": '" << text << "'";
      EXPECT_EQ(tokenizer->decode(ids), c.at("decoded")[i].get<std::string>()) << i << ": " << text;
    }
  }
}

}  // namespace
}  // namespace snapkv
