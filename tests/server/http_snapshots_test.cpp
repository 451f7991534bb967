// SPDX-License-Identifier: MIT
// GET /v1/kv/snapshots: what each file holds, and whether this server can continue it.
#include <filesystem>
#include <fstream>

#include "chat/document.h"
#include "snapkv/prefill.h"
#include "tests/server/http_support.h"
#include "tests/support/test_models.h"

namespace snapkv::test {

using namespace chat;

namespace {

constexpr const char* kText =
    "The cold wind blew from the sea, and the baker sold his bread. The secret number of Rome is "
    "48213. The cold wind blew from the sea, and the baker sold his bread.";

TEST_F(Http, SnapshotsSayWhatTheyHoldAndOfWhichModel) {
  api_.snapshot_dir = testing::TempDir() + "/described";
  std::filesystem::remove_all(api_.snapshot_dir);
  std::filesystem::create_directory(api_.snapshot_dir);
  start();
  const auto write = [&](const std::string& name, const std::shared_ptr<const Model>& model,
                         bool keeps_all) {
    const std::string notes = document_notes({}, "", "");
    const std::string path = api_.snapshot_dir + "/" + name + ".kv";
    SessionOptions options;
    options.kv = {.name = "knorm"};
    options.kv.budget = 40;
    Session session(model, options);
    const std::vector<int32_t> tokens = model->tokenize(kText);
    PrefillPrompt prompt = {.sessions = {&session}, .tokens = tokens};
    prompt.makes_prefix = keeps_all;
    Prefill prefill(std::move(prompt));
    while (!prefill.step()) {
    }
    if (keeps_all) {
      prefill.take_prefix(0)->save(path, DType::f16, notes);
    } else {
      session.save(path, notes);
    }
    return std::ssize(tokens);
  };
  const auto needle = load_model("needle");
  const int64_t n_tokens = write("chosen", needle, false);
  write("rows", needle, true);
  const auto other = load_model("tiny-f32");
  write("strange", other, false);
  write("strange-rows", other, true);
  const Json list = Json::parse(client().Get("/v1/kv/snapshots")->body)["data"];
  ASSERT_EQ(list.size(), 4u) << list;
  EXPECT_EQ(list[0]["tokens"], n_tokens);
  EXPECT_EQ(list[0]["keep_full"], false);
  EXPECT_EQ(list[0]["kv"]["policy"], "knorm");
  EXPECT_EQ(list[0]["kv"]["budget"], 40);
  EXPECT_FALSE(list[0].contains("problem")) << list;
  EXPECT_EQ(list[1]["keep_full"], true);
  EXPECT_FALSE(list[1].contains("kv") || list[1].contains("problem")) << list;
  EXPECT_EQ(engine_.documents().size(), 0U) << "what requests use stays open, nothing else";
  for (const size_t i : {2, 3}) {
    EXPECT_NE(list[i]["problem"].get<std::string>().find("another model"), std::string::npos)
        << list[i];
  }
}

TEST_F(Http, WhatIsWrongWithASnapshotIsSaidWithoutTheServersPath) {
  api_.snapshot_dir = testing::TempDir() + "/damaged";
  std::filesystem::remove_all(api_.snapshot_dir);
  std::filesystem::create_directory(api_.snapshot_dir);
  std::ofstream(api_.snapshot_dir + "/torn.kv") << "SNAPKVC";
  start();
  const Json list = Json::parse(client().Get("/v1/kv/snapshots")->body)["data"];
  ASSERT_EQ(list.size(), 1u) << list;
  const std::string problem = list[0].value("problem", "");
  EXPECT_NE(problem.find("torn.kv"), std::string::npos) << problem;
  EXPECT_EQ(problem.find(api_.snapshot_dir), std::string::npos) << problem;
}

}  // namespace
}  // namespace snapkv::test
