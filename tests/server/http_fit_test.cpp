// SPDX-License-Identifier: MIT
// POST /v1/kv/fit: whether a prompt fits, said before it is read.
#include <string>

#include "tests/server/http_support.h"

namespace snapkv::test {
namespace {

TEST_F(Http, SaysBeforeItIsSentWhetherAPromptFits) {
  api_.session.n_ctx = 100;
  start();
  const auto fit = [&](const std::string& body) {
    const auto response = post("/v1/kv/fit", body);
    EXPECT_EQ(response->status, 200) << response->body;
    return Json::parse(response->body);
  };
  const Json small = fit(R"({"prompt": "a b c"})");
  EXPECT_EQ(small["fits"], true);
  EXPECT_EQ(small["most_prompt_tokens"], 99);
  EXPECT_EQ(small["n_ctx"], 100);
  EXPECT_EQ(small["limit"], "context");
  Json message = {{"role", "user"}, {"content", std::string(200, 'x')}};
  const Json large = fit(Json{{"messages", Json::array({message})}}.dump());
  EXPECT_EQ(large["fits"], false);
  EXPECT_GT(large["prompt_tokens"], 100) << "with the template's own tokens";
  EXPECT_EQ(post("/v1/kv/fit", "{}")->status, 400);
  EXPECT_EQ(post("/v1/kv/fit", R"({"prompt": ["a", "b"]})")->status, 400);
  EXPECT_TRUE(engine_.requests().empty()) << "nothing was computed";
}

}  // namespace
}  // namespace snapkv::test
