// SPDX-License-Identifier: MIT
// Templates of real models, rendered with all conversations of conversations.json, must give the
// texts of transformers, recorded as hashes by record_templates.py. The templates are not in the
// repository: SNAPKV_TEST_DATA names the folder that has them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/fnv1a.h"
#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

TEST(JinjaTemplates, EqualTextsAndErrorsAsTransformers) {
  const char* folder = std::getenv("SNAPKV_TEST_DATA");
  if (folder == nullptr) {
    GTEST_SKIP() << "SKIPPED: SNAPKV_TEST_DATA is not set; it must name the folder that has "
                    "templates/*.jinja";
  }
  use_utc();
  const Json conversations = read_json("jinja/conversations.json");
  const Json golden = read_json("jinja/templates.json");
  ASSERT_EQ(golden.at("now"), kNow);
  int n_equal = 0, n_errors = 0, n_generators = 0;
  for (const auto& [name, texts] : golden.at("templates").items()) {
    const auto tmpl =
        ChatTemplate::parse(read_bytes(std::string(folder) + "/templates/" + name), name);
    for (const auto& [conversation, expected] : texts.items()) {
      SCOPED_TRACE(name + " with " + conversation);
      const std::string error = expected.value("error", "");
      // From a template for llama.cpp, which takes the result of map() as a list, as this library
      // does.
      const bool generator = error.find("generator is not JSON serializable") != std::string::npos;
      try {
        const std::string text = tmpl.render(conversations.at(conversation).dump(), kNow).text;
        n_generators += generator;
        if (generator) continue;
        EXPECT_EQ(error, "") << text;
        EXPECT_EQ(text.size(), expected.value("bytes", size_t{0})) << text;
        EXPECT_EQ(fmt::format("{:016x}", fnv1a(text)), expected.value("fnv1a", "")) << text;
        ++n_equal;
      } catch (const Error& e) {
        EXPECT_FALSE(error.empty() || generator) << e.what();
        ++n_errors;
      }
    }
  }
  std::printf("%d texts equal, %d errors in both, %d of generators\n", n_equal, n_errors,
              n_generators);
  EXPECT_GT(n_equal, 800);
}

}  // namespace
}  // namespace snapkv::test
