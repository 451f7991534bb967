// SPDX-License-Identifier: MIT
// --kv-memory and --kv-decode-limit: their sources, their effects, and their messages.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace limits_tests {

using Json = nlohmann::json;

// The bytes of a row in all 6 layers and 3 heads of the needle model: K and V of 32 f16 values, and
// a position.
constexpr int64_t kRow = 6 * 3 * (2 * 32 * 2 + 4);
constexpr int64_t kReserve = 256;  // decode_reserve, unless -n says that fewer tokens come
constexpr int64_t kAnswer = 8;

Command generate(std::vector<std::string> more) {
  Command r;
  r.args = {"generate",    "-m", needle_model(), "--temp", "0",  "-p", rome_prompt(20),
            "--kv-window", "16", "--kv-kernel",  "15",     "-n", "8"};
  r.args.insert(r.args.end(), more.begin(), more.end());
  return r;
}

Json json_of(Command r) {
  r.args.push_back("--json");
  const Result result = run(r);
  EXPECT_EQ(result.code, 0) << result.err;
  return result.code == 0 ? Json::parse(result.out) : Json();
}

void expect_usage_error(const Command& r, const std::vector<std::string>& parts) {
  const Result result = run(r);
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  for (const std::string& part : parts) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " in\n" << result.err;
  }
}

TEST(KvMemory, MakesTheBudgetAndSaysSo) {
  const std::string size = std::to_string((96 + kAnswer) * kRow) + "b";
  const Json json = json_of(generate({"--kv-memory", size}));
  EXPECT_EQ(json.at("text"), " 48213.\n");
  EXPECT_EQ(json.at("settings").at("kv").at("budget"), 96);
  EXPECT_EQ(json.at("settings").at("kv").at("memory"), (96 + kAnswer) * kRow);
  EXPECT_EQ(json.at("kv").at("layers").at(3).at("kept"), Json({96, 96, 96}));
  EXPECT_EQ(json.at("kv").at("bytes_allocated_at_end"), (96 + kAnswer) * kRow);

  const Result text = run(generate({"--kv-memory", "1MiB"}));
  EXPECT_EQ(text.code, 0) << text.err;
  const std::string rows = std::to_string((1 << 20) / kRow - kAnswer);
  EXPECT_NE(text.err.find("--kv-memory 1.0 MiB: a budget of " + rows + " rows"), std::string::npos)
      << text.err;
  const std::string more = std::to_string((1 << 20) / kRow - kReserve);
  const Result info = run({"info", "-m", needle_model(), "-c", "4000", "--kv-memory", "1MiB"});
  EXPECT_NE(info.out.find("a budget of " + more + " rows"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find(more + " rows kept"), std::string::npos) << info.out;
}

TEST(KvMemory, ExcludesBudgetAndRatioWhereTheUserGivesThem) {
  expect_usage_error(generate({"--kv-memory", "1M", "--kv-budget", "96"}),
                     {"--kv-memory", "--kv-budget"});
  expect_usage_error(generate({"--kv-memory", "1M", "--kv-ratio", "0.5"}),
                     {"--kv-memory", "--kv-ratio"});
  expect_usage_error(generate({"--kv-memory", "1M", "--kv-policy", "full"}),
                     {"--kv-memory", "full"});
  expect_usage_error(generate({"--kv-memory", "2x"}), {"--kv-memory"});
  // A window of 16, no sinks, one more row, and the reserve.
  expect_usage_error(generate({"--kv-memory", "1000b"}),
                     {"--kv-memory is 1000", std::to_string((17 + kAnswer) * kRow)});
}

TEST(KvMemory, TheStrongerSourceWins) {
  const std::string file = make_file("snapkv/config.toml", "kv-budget = 70\n");
  const std::string home = std::filesystem::path(file).parent_path().parent_path().string();
  Command r = generate({});
  r.env["XDG_CONFIG_HOME"] = home;
  EXPECT_EQ(json_of(r).at("settings").at("kv").at("budget"), 70);
  r.env["SNAPKV_KV_MEMORY"] = "1MiB";  // stronger than the file
  const int64_t rows = (1 << 20) / kRow - kAnswer;
  EXPECT_EQ(json_of(r).at("settings").at("kv").at("budget"), rows);
  r.args.insert(r.args.end(), {"--kv-budget", "80"});  // takes precedence over both
  Json kv = json_of(r).at("settings").at("kv");
  EXPECT_EQ(kv.at("budget"), 80);
  EXPECT_EQ(kv.at("memory"), 0);
  r = generate({});
  r.env["SNAPKV_KV_MEMORY"] = "1MiB";
  r.env["SNAPKV_KV_BUDGET"] = "80";
  expect_usage_error(r, {"--kv-memory", "--kv-budget", "environment"});
  r = generate({});
  r.env["XDG_CONFIG_HOME"] =
      std::filesystem::path(
          make_file("snapkv/config.toml", "kv-budget = 70\nkv-memory = \"1MiB\"\n"))
          .parent_path()
          .parent_path()
          .string();
  expect_usage_error(r, {"--kv-memory", "--kv-budget", "config.toml"});
}

TEST(DecodeLimit, BoundsTheAnswerAndSaysSo) {
  Command r = generate({"--kv-budget", "64", "--kv-decode-limit", "80", "--ignore-eos"});
  r.args[std::find(r.args.begin(), r.args.end(), "-n") - r.args.begin() + 1] = "60";
  const Json json = json_of(r);
  EXPECT_EQ(json.at("settings").at("kv").at("decode_limit"), 80);
  EXPECT_EQ(json.at("kv").at("recompressed"), (59 - 1) / 16);
  EXPECT_LE(json.at("kv").at("bytes_at_end"), 80 * kRow);
  // of the window, and of a step's token and guesses
  EXPECT_EQ(json.at("kv").at("query_bytes"), 6 * (16 + 8) * 6 * 32 * 4);
  EXPECT_GT(json.at("timings").at("recompress_seconds"), 0);
  const Result text = run(r);
  EXPECT_NE(text.err.find("compressed 3 times while decoding"), std::string::npos) << text.err;
  EXPECT_EQ(run(generate({"--kv-budget", "64"})).err.find("while decoding"), std::string::npos);
  expect_usage_error(generate({"--kv-budget", "64", "--kv-decode-limit", "64"}),
                     {"--kv-decode-limit is 64", "budget"});
  expect_usage_error(generate({"--kv-policy", "full", "--kv-decode-limit", "64"}),
                     {"--kv-decode-limit", "full"});
  const Result info = run(
      {"info", "-m", needle_model(), "-c", "4000", "--kv-budget", "64", "--kv-decode-limit", "80"});
  EXPECT_NE(info.out.find("--kv-decode-limit 80"), std::string::npos) << info.out;
}

TEST(Limits, OfTheOtherCommands) {
  const std::string model = needle_model();
  const Result bench =
      run({"bench", "-m", model, "-p", "60", "-n", "0", "-r", "1", "--no-warmup", "--no-check",
           "--no-limits", "--kv-policy", "full,snapkv", "--kv-memory", "900KiB", "-o", "json"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const Json results = Json::parse(bench.out);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].at("kv_budget"), 0);
  EXPECT_EQ(results[1].at("kv_budget"), 900 * 1024 / kRow - kReserve);
  EXPECT_EQ(results[1].at("kv_memory"), 900 * 1024);
  Command both;
  both.args = {"bench", "-m", model, "--kv-memory", "1M", "--kv-budget", "64"};
  expect_usage_error(both, {"--kv-memory", "--kv-budget"});
  const std::string records = make_folder() + "/out.jsonl";
  const Result eval = run({"eval", "needle", "-m", model, "--out", records, "--lengths", "300",
                           "--depths", "1", "--kernels", "15", "--kv-window", "16", "--kv-memory",
                           "900KiB", "--kv-decode-limit", "1000"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const std::string lines = read_file(records);  // the record of full, then of snapkv
  const Json full = Json::parse(lines.substr(0, lines.find('\n'))).at("configuration");
  const Json kept = Json::parse(lines.substr(lines.find('\n') + 1)).at("configuration");
  EXPECT_FALSE(full.contains("kv_memory"));
  EXPECT_EQ(kept.at("kv_memory"), 900 * 1024);
  EXPECT_EQ(kept.at("kv_decode_limit"), 1000);
  EXPECT_EQ(kept.at("budget"), 900 * 1024 / kRow - kReserve);
  EXPECT_NE(eval.out.find("(921600 bytes), window 16"), std::string::npos) << eval.out;
  const Result demo = run({"demo", "-m", model, "--length", "400", "--kv-memory", "900KiB"});
  EXPECT_EQ(demo.code, 0) << demo.err;
  EXPECT_NE(demo.out.find("rows kept, window 16"), std::string::npos) << demo.out;
}

}  // namespace limits_tests
}  // namespace snapkv::test
