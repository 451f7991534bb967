// SPDX-License-Identifier: MIT
// Hundreds of small templates, at least one for every construct: each must give the text that
// Python's Jinja2 gives, recorded by snippets.py, or an error if Jinja2 throws one.
#include <gtest/gtest.h>

#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

TEST(JinjaSnippets, EqualTextsAndErrorsAsJinja2) {
  use_utc();
  const Json golden = read_json("jinja/snippets.json");
  const std::string variables = golden.at("variables").dump();
  ASSERT_EQ(golden.at("now"), kNow);
  ASSERT_GT(golden.at("snippets").size(), 400u);
  for (const Json& snippet : golden.at("snippets")) {
    const std::string source = snippet.at("template");
    SCOPED_TRACE(source);
    try {
      const std::string text = render(source, variables).text;
      if (snippet.contains("error")) {
        ADD_FAILURE() << "Jinja2 throws " << snippet.at("error") << ", but this is: " << text;
      } else {
        EXPECT_EQ(text, snippet.at("text").get<std::string>());
      }
    } catch (const Error& e) {
      EXPECT_TRUE(snippet.contains("error")) << e.what();
    }
  }
}

}  // namespace
}  // namespace snapkv::test
