// SPDX-License-Identifier: MIT
// snapkv info: the facts, the memory plan, the metadata and the tensors, as text and as JSON.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "run_process.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hostile_text_model.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace info_tests {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Info, ShowsTheModelAndThePlan) {
  const Result r = run({"info", "-m", needle_model()});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  for (const char* part : {"needle", "llama", "f16", "8192 tokens", "6 query, 3 KV, 32 wide",
                           "full cache", "snapkv", "1024 rows kept"}) {
    EXPECT_TRUE(contains(r.out, part)) << part << " is missing in\n" << r.out;
  }
  EXPECT_TRUE(contains(r.out, "longest prompt 8192 tokens, the whole context, with any cache; "))
      << "not the millions that memory would hold\n"
      << r.out;
  EXPECT_FALSE(contains(r.out, "\x1b"));
  EXPECT_FALSE(contains(r.out, "blk.0"));
}

TEST(Info, ListsMetadataAndTensorsOnRequest) {
  const Result r = run({"info", "-m", needle_model(), "--metadata", "--tensors"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(contains(r.out, "llama.rope.freq_base")) << r.out;
  EXPECT_TRUE(contains(r.out, "blk.3.ffn_down.weight")) << r.out;
  EXPECT_TRUE(contains(r.out, "[192, 512]")) << r.out;
}

/// The seconds of processor time that the ended children of this process have taken.
double seconds_of_children() {
  rusage used = {};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& t) { return t.tv_sec + 1e-6 * t.tv_usec; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// A file with 300,000 keys once took half a minute, because each key was looked up among all of
// them.
TEST(Info, TimeGrowsWithTheNumberOfKeysNoFaster) {
  double previous = 0;
  for (const int n : {75'000, 300'000}) {
    const std::string path = make_folder() + "/keys.gguf";
    write_model_of_many_keys(needle_model(), path, n);
    const double start = seconds_of_children();
    const Result r = run({"info", "-m", path, "--json", "--metadata"});
    const double taken = seconds_of_children() - start;
    ASSERT_EQ(r.code, 0) << r.err;
    const Json last = Json::parse(r.out).at("metadata").at(fmt::format("more.{}", n - 1));
    EXPECT_EQ(last.at("value"), std::to_string(n - 1));
    if (previous > 0) {
      EXPECT_LT(taken, 8 * previous) << "seconds; a quarter of the keys took " << previous;
    }
    previous = taken;
  }
}

TEST(Info, PlanCountsBytes) {
  const Result r = run({"info", "-m", needle_model(), "-c", "4000", "--kv-budget", "128", "--json",
                        "--metadata", "--tensors"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("n_layer"), 6);
  EXPECT_EQ(json.at("n_head_kv"), 3);
  EXPECT_EQ(json.at("metadata").at("general.architecture").at("value"), "llama");
  EXPECT_EQ(json.at("tensors").size(), 6u * 9 + 2);
  const Json& memory = json.at("memory");
  EXPECT_EQ(memory.at("n_tokens"), 4000);
  const int64_t layer_row = 3 * (2 * 32 * 2 + 4);  // 3 heads: K and V of 32 f16, and a position
  EXPECT_EQ(memory.at("policy").at("kv_scratch"), 4000 * layer_row);
  EXPECT_GE(memory.at("policy").at("kv_kept"), 4 * 128 * layer_row);
  EXPECT_LT(memory.at("policy").at("kv_kept"), 4 * 1000 * layer_row);
  EXPECT_GE(memory.at("full").at("kv_kept"), 4 * 4000 * layer_row);
  EXPECT_GT(memory.at("full").at("total"), memory.at("policy").at("total"));
}

TEST(Info, TheRowsOfThePlanAddUp) {
  for (const char* option :
       {"--no-progress", "--kv-refresh", "--kv-decode-limit=300", "--draft=off", "--draft=self"}) {
    const Result r =
        run({"info", "-m", needle_model(), "-c", "4000", "--kv-budget", "128", "--json", option});
    ASSERT_EQ(r.code, 0) << r.err;
    const Json memory = Json::parse(r.out).at("memory");
    for (const char* column : {"full", "policy"}) {
      int64_t sum = 0;
      for (const auto& [key, bytes] : memory.at(column).items()) {
        if (key != "total" && key != "kv_peak") sum += bytes.get<int64_t>();
      }
      EXPECT_EQ(sum, memory.at(column).at("total")) << option << " " << column;
    }
  }
  const auto text = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"info", "-m", needle_model(), "-c", "4000"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args).out;
  };
  EXPECT_TRUE(contains(text({"--kv-refresh"}), "all rows, beside the kept"));
  EXPECT_TRUE(contains(text({"--draft", "self"}), "all rows, beside the kept"));
  EXPECT_FALSE(contains(text({}), "all rows, beside the kept"));
  EXPECT_TRUE(contains(text({"--draft-model", needle_model()}), "the model that guesses"));
  EXPECT_FALSE(contains(text({"--draft-model", needle_model(), "--draft", "off"}),
                        "the model that guesses"));
}

// The lines are as wide as the longest name, and in a hostile file a name may be of any length.
TEST(Info, OneLongNameOfATensorDoesNotWidenAllLines) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add_f32(std::string(512 << 10, 'n'), {1}, {0.0f});
  for (int i = 0; i < 100; ++i) writer.add_f32(fmt::format("t{}", i), {1}, {0.0f});
  const std::string path = make_folder() + "/long.gguf";
  writer.write(path);
  const Result r = run({"info", "-m", path, "--tensors"});
  EXPECT_TRUE(contains(r.out, "t99 ")) << r.out.size();
  EXPECT_LT(r.out.size(), 1u << 20);
}

// Layers with a window keep the rows of the window for every policy, also with a decode limit.
TEST(Info, WindowsAreNotCompressed) {
  const std::string model = model_path("gemma3");  // a window of 16 tokens in 6 of 7 layers
  const Result text = run({"info", "-m", model, "-c", "1000", "--kv-decode-limit", "200",
                           "--kv-budget", "100", "--kv-window", "8"});
  ASSERT_EQ(text.code, 0) << text.err;
  const int64_t row = 2 * (2 * 32 * 2 + 4);  // 2 heads: K and V of 32 f16 values, and a position
  const double kib = static_cast<double>((200 + 6 * 16) * row) / 1024;
  EXPECT_TRUE(contains(text.out, fmt::format("at most {:.1f} KiB", kib))) << text.out;
  const Result r =
      run({"info", "-m", model, "-c", "1000", "--kv-budget", "100", "--kv-window", "8", "--json"});
  ASSERT_EQ(r.code, 0) << r.err;
  const Json json = Json::parse(r.out);
  int64_t n_windows = 0;
  for (const Json& layer : json.at("layers")) n_windows += layer.value("window", 0) == 16;
  EXPECT_EQ(n_windows, 6);
  const Json &full = json.at("memory").at("full"), &kept = json.at("memory").at("policy");
  EXPECT_EQ(full.at("kv_kept").get<int64_t>() - kept.at("kv_kept").get<int64_t>(), 900 * row);
}

// Rows that several layers read are counted once.
TEST(Info, LayersThatReadRowsOfOthersTakeNone) {
  const std::string model = model_path("gemma4-e");  // 3 of 9 layers have rows
  const Result text = run({"info", "-m", model});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "264 B per token in f16, of 1 layer")) << text.out;
  EXPECT_TRUE(contains(text.out, "6 layers read rows of")) << text.out;
  const Json json = Json::parse(run({"info", "-m", model, "--json"}).out);
  EXPECT_EQ(json.at("kv_bytes_per_token").get<int64_t>(), 264 + 2 * 136);
  std::vector<int> rows_of;
  for (const Json& layer : json.at("layers")) rows_of.push_back(layer.value("rows_of", -1));
  EXPECT_EQ(rows_of, (std::vector<int>{-1, -1, -1, 1, 1, 2, 1, 1, 2}));
}

}  // namespace info_tests
}  // namespace snapkv::test
