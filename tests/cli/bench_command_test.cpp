// SPDX-License-Identifier: MIT
// snapkv bench: the tests that its lists make, the fields and values of its four formats, the check
// before timing, and exit codes; also bench/compare_llama.sh with `snapkv bench` in place of
// llama-bench, and bench/compare_engines.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/run_process.h"

namespace snapkv::test {
namespace bench_command_tests {

using Json = nlohmann::ordered_json;

// Runs `snapkv bench` on the needle model. The check and the measurement of the machine's limits
// take long, so they are off by default.
Result bench(const std::string& options, bool check = false, bool limits = false) {
  std::vector<std::string> args = {"bench", "-m", needle_model(), "--no-progress"};
  if (!check) args.push_back("--no-check");
  if (!limits) args.push_back("--no-limits");
  std::istringstream words(options);
  for (std::string word; words >> word;) args.push_back(word);
  return run(args);
}

Json bench_json(const std::string& options, bool check = false, bool limits = false) {
  const Result r = bench(options + " -o json", check, limits);
  EXPECT_EQ(r.code, 0) << r.err;
  Json json = Json::parse(r.out, nullptr, false);
  EXPECT_TRUE(json.is_array()) << r.out;
  return json;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

// The name of a test: "pp16", "tg2 x3 @ d8 full t1".
std::string label(const Json& r) {
  const auto number = [&](const char* key) { return std::to_string(r.at(key).get<int64_t>()); };
  std::string text = r.at("n_prompt") > 0 ? "pp" + number("n_prompt") : "tg" + number("n_gen");
  if (r.at("n_seq") > 1) text += " x" + number("n_seq");
  if (r.at("n_depth") > 0) text += " @ d" + number("n_depth");
  text += " " + r.at("kv_policy").get<std::string>();
  if (r.at("kv_budget") > 0) text += number("kv_budget");
  return text + " t" + number("n_threads");
}

std::vector<std::string> labels(const Json& results) {
  std::vector<std::string> all;
  for (const Json& r : results) all.push_back(label(r));
  return all;
}

TEST(BenchCommandTest, EveryCombinationIsOneTest) {
  const Json results = bench_json(
      "-p 4,6 -n 1 -d 0,8 -b 1 -b 2 -t 1 -r 1 --no-warmup --kv-policy full,snapkv "
      "--kv-budget 40,48");
  std::vector<std::string> expected;
  for (const char* kv : {" full t1", " snapkv40 t1", " snapkv48 t1"}) {
    for (const char* depth : {"", " @ d8"}) {
      for (const char* test : {"pp4", "pp6", "tg1", "tg1 x2"}) {
        expected.push_back(std::string(test) + depth + kv);
      }
    }
  }
  EXPECT_EQ(labels(results), expected);
}

TEST(BenchCommandTest, RangesAreLists) {
  EXPECT_EQ(labels(bench_json("-p 2-8*2,3-4 -n 0 -r 1 -t 1 --no-warmup --kv-policy full")),
            (std::vector<std::string>{"pp2 full t1", "pp4 full t1", "pp8 full t1", "pp3 full t1"}));
  EXPECT_EQ(
      labels(bench_json("-p 4,4 -n 0 -d 0 -d 0 -r 1 -t 1,1 --no-warmup --kv-policy snapkv,snapkv "
                        "--kv-type f16,f16 --kv-budget 40,40")),
      std::vector<std::string>{"pp4 snapkv40 t1"})
      << "what a list names twice is measured once";
  EXPECT_EQ(labels(bench_json("-p 0 -n 1-6+2 -r 1 -t 1 --no-warmup --kv-policy full")),
            (std::vector<std::string>{"tg1 full t1", "tg3 full t1", "tg5 full t1"}));
}

TEST(BenchCommandTest, ThreadsAreAListToo) {
  EXPECT_EQ(labels(bench_json("-p 4 -n 0 -r 1 -t 1,2 --no-warmup --kv-policy full")),
            (std::vector<std::string>{"pp4 full t1", "pp4 full t2"}));
  EXPECT_GE(bench_json("-p 4 -n 0 -r 1 --no-warmup").at(0).at("n_threads").get<int>(), 1);
}

TEST(BenchCommandTest, PrefillHasLlamaBenchsFieldsAndOurs) {
  const Json r = bench_json("-p 200 -n 0 -r 3 -t 1 --kv-budget 40").at(0);
  for (const char* key :
       {"build_commit", "cpu_info", "backends", "model_filename", "model_type", "test_time"}) {
    EXPECT_TRUE(r.at(key).is_string()) << key;
  }
  for (const char* key :
       {"model_size",    "model_n_params",   "n_batch",     "n_threads",      "avg_ns",
        "avg_ts",        "best_ts",          "prefill_s",   "pack_s",         "linear_s",
        "attention_s",   "score_s",          "gather_s",    "select_percent", "gflops",
        "linear_gflops", "attention_gflops", "kv_mib_full", "kv_mib_peak",    "kv_mib",
        "peak_rss_mib"}) {
    EXPECT_GT(r.at(key).get<double>(), 0) << key;
  }
  EXPECT_EQ(r.at("type_k"), "f16");
  EXPECT_EQ(r.at("model_n_params"), 2632128);
  ASSERT_EQ(r.at("samples_ns").size(), 3u);
  ASSERT_EQ(r.at("samples_ts").size(), 3u);
  double sum = 0, best = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double ts = r.at("samples_ts").at(i), ns = r.at("samples_ns").at(i);
    EXPECT_NEAR(ts, 200e9 / ns, 1e-3 * ts);
    sum += ts;
    best = std::max(best, ts);
  }
  EXPECT_NEAR(r.at("avg_ts").get<double>(), sum / 3, 1e-6 * sum);
  EXPECT_EQ(r.at("best_ts"), best);
  EXPECT_TRUE(r.at("gbps").is_null());  // weights are not read once per token here
  // 200 rows are read and 40 kept. The parts add up to the whole time.
  EXPECT_NEAR(r.at("compression").get<double>(), 200.0 / 40, 1e-9);
  EXPECT_LT(r.at("kv_mib").get<double>(), r.at("kv_mib_peak").get<double>());
  double parts = 0;
  for (const char* key : {"pack_s", "linear_s", "attention_s", "score_s", "gather_s"}) {
    parts += r.at(key).get<double>();
  }
  EXPECT_NEAR(parts, r.at("prefill_s").get<double>(), 1e-6 + 1e-3 * parts);
}

TEST(BenchCommandTest, DecodeReportsBandwidth) {
  const Json results = bench_json("-p 0 -n 3 -d 0,50 -b 1,2 -r 2 -t 1 --kv-policy full");
  ASSERT_EQ(results.size(), 4u);
  for (const Json& r : results) {
    const double seconds = r.at("avg_ns").get<double>() / 1e9;
    const int64_t n_seq = r.at("n_seq"), depth = r.at("n_depth");
    // Each step reads all weights and the rows of every sequence. A row is 6 layers of 3 heads of
    // 128 bytes of key and value. Depth 0 reads 2 + 3 + 4 rows, as the first token is there
    // already. Depth 50 reads 51 + 52 + 53, and 54 + 55 + 56 in the second repetition.
    const double rows = depth == 0 ? 9 : (156 + 165) / 2.0;
    const double bytes =
        3 * r.at("model_size").get<double>() + rows * 6 * 3 * 128 * static_cast<double>(n_seq);
    EXPECT_NEAR(r.at("gbps").get<double>(), bytes / seconds / 1e9, 1e-5 * bytes / seconds / 1e9)
        << label(r);
    // The mean of the rates is at least the rate of the mean time; they are equal for equal times.
    EXPECT_GE(r.at("avg_ts").get<double>(),
              (1 - 1e-5) * 3.0 * static_cast<double>(n_seq) / seconds);
    EXPECT_GE(r.at("best_ts").get<double>(), r.at("avg_ts").get<double>());
    EXPECT_GT(r.at("gflops").get<double>(), 0);
    EXPECT_TRUE(r.at("prefill_s").is_null());
  }
}

TEST(BenchCommandTest, StepsOfSeveralTokensReadRowsAndWeightsOnce) {
  const Json results = bench_json("-p 0 -n 7 -d 50 -b 2 --step 1,4 -r 1 -t 1 --kv-policy full");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.at(0).at("n_step"), 1);
  EXPECT_EQ(results.at(1).at("n_step"), 4);
  const auto work = [&](size_t i, const char* key) { return results.at(i).at(key).get<double>(); };
  // steps of 4 and 3 tokens, after which there are 54 and 57 rows in each of 2 sequences
  const double bytes = 2 * work(1, "model_size") + (54 + 57) * 6 * 3 * 128 * 2.0;
  EXPECT_NEAR(work(1, "work_gb") * 1e9, bytes, 1e-5 * bytes);
  EXPECT_NEAR(work(1, "work_gflop"), work(0, "work_gflop"), 1e-9) << "the same tokens";
}

TEST(BenchCommandTest, RowsArePercentOfTheMachinesLimits) {
  // Where products are of bf16, a prompt's weights are always packed; f16 as it is in the file only
  // for prompts longer than these.
  const Json results = bench_json("-p 8,96 -n 3 -r 1 -t 1 --no-warmup", false, true);
  ASSERT_EQ(results.size(), 3u);
  const std::string backend = results[0].at("backends");
  const bool bf16 = backend.find("bf16)") != std::string::npos;
  for (const Json& r : results) {
    SCOPED_TRACE(label(r));
    const auto number = [&](const char* key) { return r.at(key).get<double>(); };
    const std::string packed = bf16 && number("n_prompt") > 0 ? "bf16" : "f32";
    EXPECT_EQ(r.at("linear_products"), packed);
    EXPECT_EQ(r.at("attention_products"), bf16 && number("n_prompt") > 0 ? "bf16" : "f32");
    const double seconds = number("avg_ns") / 1e9;
    EXPECT_NEAR(number("percent_of_limit"), 100 * number("limit_s") / seconds, 1e-3);
    EXPECT_NEAR(number("work_gflop"), number("gflops") * seconds, 1e-6 * number("work_gflop"));
    const double memory = number("work_gb") / number("machine_read_gbps");
    if (r.at("limit") == "memory") {
      EXPECT_NEAR(number("limit_s"), memory, 1e-6 * memory);
    } else {
      EXPECT_GE(number("limit_s"), memory);
    }
    EXPECT_GT(number("machine_f32_gflops"), 0);
    EXPECT_GT(number("machine_int8_gops"), 0);
    EXPECT_EQ(r.at("machine_bf16_gflops").is_null(), !bf16);
  }
  EXPECT_EQ(results[0].at("pack_s").get<double>() > 0, bf16);
  const Json without = bench_json("-p 4 -n 0 -r 1 -t 1 --no-warmup").at(0);
  EXPECT_TRUE(without.at("percent_of_limit").is_null());
}

TEST(BenchCommandTest, CsvAndJsonLinesHoldTheSameFields) {
  const std::string options = "-p 4 -n 2 -r 1 -t 1 --no-warmup";
  const std::vector<std::string> csv = lines(bench(options + " -o csv").out);
  const std::vector<std::string> jsonl = lines(bench(options + " -o jsonl").out);
  ASSERT_EQ(csv.size(), 3u);
  ASSERT_EQ(jsonl.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json r = Json::parse(jsonl[i]);
    std::string header;
    size_t n_columns = 0;
    for (const auto& [key, value] : r.items()) {
      if (value.is_array()) continue;
      header += (header.empty() ? "" : ",") + key;
      ++n_columns;
    }
    EXPECT_EQ(csv[0], header);
    size_t n_quotes = 0;  // every value is quoted, and no value contains a quote
    for (const char c : csv[i + 1]) n_quotes += c == '"' ? 1 : 0;
    EXPECT_EQ(n_quotes, 2 * n_columns) << csv[i + 1];
  }
}

TEST(BenchCommandTest, RecordsSayWhereTheWeightsWere) {
  const std::string options = "-p 4 -n 0 -r 1 -t 1 --no-warmup";
  EXPECT_EQ(bench_json(options).at(0).at("weights"), "auto");
  EXPECT_EQ(bench_json(options + " --weights mapped").at(0).at("weights"), "mapped");
}

TEST(BenchCommandTest, MarkdownIsTheDefault) {
  const Result r = bench("-p 4 -n 2 -d 0,3 -r 1 -t 1 --no-warmup");
  EXPECT_EQ(r.code, 0) << r.err;
  const std::vector<std::string> table = lines(r.out);
  ASSERT_GE(table.size(), 6u);
  const auto n_bars = [](const std::string& line) {
    return std::count(line.begin(), line.end(), '|');
  };
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(n_bars(table[i]), n_bars(table[0])) << table[i];
  for (const char* title :
       {"t/s", "GFLOP/s", "GB/s", "score %", "gather %", "KV full", "peak RSS"}) {
    EXPECT_NE(table[0].find(title), std::string::npos) << title;
  }
  EXPECT_NE(table[2].find(" pp4 |"), std::string::npos);
  EXPECT_NE(table[3].find(" tg2 |"), std::string::npos);
  EXPECT_NE(table[4].find(" pp4 @ d3 |"), std::string::npos);
  EXPECT_NE(table[5].find(" tg2 @ d3 |"), std::string::npos);
}

TEST(BenchCommandTest, ChecksResultsBeforeTiming) {
  const Json checked = bench_json("-p 4 -n 1 -b 2 -r 1 -t 2 --no-warmup", true).at(0);
  const std::string what = checked.at("check");
  EXPECT_NE(what.find("reference"), std::string::npos) << what;
  EXPECT_NE(what.find("prefill against decode"), std::string::npos) << what;
  EXPECT_NE(what.find("batch of 2"), std::string::npos) << what;
  EXPECT_LT(checked.at("check_max_diff").get<double>(), 0.5);
  const Json unchecked = bench_json("-p 4 -n 0 -r 1 -t 1 --no-warmup").at(0);
  EXPECT_EQ(unchecked.at("check"), "none");
  EXPECT_TRUE(unchecked.at("check_max_diff").is_null());
}

TEST(BenchCommandTest, BadListsAreUsageErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {"-p x", "--n-prompt: 'x'"},
      {"-p -1", "--n-prompt: '-1'"},
      {"-p 8-4", "8-4"},
      {"-p 1-8*1", "1-8*1"},
      {"-p 1-8+0", "1-8+0"},
      {"-p 1-99999", "more than"},
      {"-p 99999999999", "--n-prompt"},
      {"-n 1.5", "--n-gen: '1.5'"},
      {"-d 1k", "--n-depth: '1k'"},
      {"-b 0", "--batch: '0'"},
      {"--step 17", "--step: '17'"},
      {"-t -2", "--threads: '-2'"},
      {"-r 0", "--repetitions"},
      {"-o xml", "--output"},
      {"-p 0 -n 0", "nothing to measure"},
      {"--kv-policy none", "--kv-policy: 'none'"},
      {"--kv-budget 8", "budget is 8"},
      {"--kv-type i32", "--kv-type: 'i32'"},
  };
  for (const auto& [options, message] : cases) {
    const Result r = bench(options);
    EXPECT_EQ(r.code, 2) << options;
    EXPECT_NE(r.err.find(message), std::string::npos) << options << ": " << r.err;
    EXPECT_EQ(r.out, "") << options;
  }
  EXPECT_EQ(run({"bench", "-p", "4"}).code, 2);  // no model
  EXPECT_EQ(run({"bench", "-m", "/nonexistent.gguf"}).code, 1);
}

TEST(BenchCommandTest, InterruptStops) {
  Command command;
  command.args = {"bench", "-m",      needle_model(), "-p",         "0",
                  "-n",    "1000000", "--no-check",   "--no-limits"};
  command.terminal = true;
  command.interrupt_when = [](const std::string&, const std::string& err) { return !err.empty(); };
  const Result r = run(command);
  EXPECT_EQ(r.code, 130) << r.err;
}

TEST(CompareLlamaTest, PrintsRatiosOfAnyLlamaBench) {
  const std::string folder = make_folder();
  const std::string script = std::string(SNAPKV_SOURCE_DIR) + "/bench/compare_llama.sh";
  const std::string command =
      "cd " + folder +
      " && SNAPKV='" SNAPKV_BINARY "' LLAMA_BENCH='" SNAPKV_BINARY
      " bench --no-check --no-limits' '" +
      script + "' '" + needle_model() +
      "' -p 40 -n 1 -d 0,44 -r 2 --llama-d 0 --llama-r 1 -t 1 --budget 36 --keep runs >table 2>log";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_file(folder + "/log");
  const std::vector<std::string> table = lines(read_file(folder + "/table"));
  ASSERT_GE(table.size(), 5u);
  EXPECT_NE(table[0].find("full t/s"), std::string::npos) << table[0];
  EXPECT_NE(table[0].find("snapkv 36 t/s"), std::string::npos) << table[0];
  EXPECT_EQ(table[2].rfind("| prefill 40 ", 0), 0u) << table[2];
  EXPECT_EQ(table[3].rfind("| decode after 0 ", 0), 0u) << table[3];
  EXPECT_EQ(table[4].rfind("| decode after 44 ", 0), 0u) << table[4];
  const auto n_ratios = [](const std::string& line) {
    return std::count(line.begin(), line.end(), 'x');  // "1.02x"; these lines have no other x
  };
  EXPECT_EQ(n_ratios(table[2]), 2) << table[2];
  EXPECT_EQ(n_ratios(table[4]), 0) << "llama-bench did not run that depth: " << table[4];
}

// llama.cpp's lines are those of its llama-completion.
TEST(CompareEnginesTest, PrintsALineForEachRun) {
  const std::string folder = make_folder();
  std::string text;
  for (int i = 0; i < 60; ++i) text += "one two three ";
  std::ofstream(folder + "/text") << text;
  std::ofstream(folder + "/llama")
      << "echo 'load time = 250.00 ms' >&2\n"
         "echo 'prompt eval time = 100 ms / 40 tokens ( 2.5 ms per token, 400.00 tokens per "
         "second)' >&2\n"
         "echo 'eval time = 70 ms / 7 runs ( 10 ms per token, 100.50 tokens per second)' >&2\n"
         "grep -q 'one two' \"$4\"\n";  // -m MODEL -f PROMPT
  const std::string command =
      "cd " + folder + " && python3 '" SNAPKV_SOURCE_DIR "/bench/compare_engines.py' '" +
      needle_model() +
      "' text --tokens 40 --generate 4 --threads 1 --engines snapkv,snapkv-1024,llama "
      "--snapkv '" SNAPKV_BINARY "' --llama 'sh llama' >runs 2>log";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_file(folder + "/log");
  const std::vector<std::string> runs = lines(read_file(folder + "/runs"));
  ASSERT_EQ(runs.size(), 3u);
  for (const size_t i : {0, 1}) {
    const Json run = Json::parse(runs[i]);
    EXPECT_EQ(run["engine"], i == 0 ? "snapkv" : "snapkv-1024");
    EXPECT_EQ(run["n_prompt"], 40);
    for (const char* figure : {"prompt_tok_s", "answer_tok_s", "peak_mib"}) {
      EXPECT_GT(run[figure], 0.0) << figure;
    }
  }
  const Json llama = Json::parse(runs[2]);
  EXPECT_EQ(llama["load_s"], 0.25);
  EXPECT_EQ(llama["prompt_tok_s"], 400.0);
  EXPECT_EQ(llama["answer_tok_s"], 100.5);
}

TEST(CompareEnginesTest, RefusesUnknownEnginesAndShortTexts) {
  const std::string folder = make_folder();
  std::ofstream(folder + "/text") << "one two three";
  const auto run_script = [&](const std::string& options) {
    const std::string command =
        "cd " + folder + " && python3 '" SNAPKV_SOURCE_DIR "/bench/compare_engines.py' '" +
        needle_model() + "' text --snapkv '" SNAPKV_BINARY "' " + options + " >runs 2>log";
    EXPECT_NE(std::system(command.c_str()), 0) << options;
    return read_file(folder + "/log");
  };
  EXPECT_NE(run_script("--engines vllm").find("--engines vllm: expected some of snapkv,"),
            std::string::npos);
  EXPECT_NE(run_script("--tokens 4000").find("4000 are wanted"), std::string::npos);
}

}  // namespace bench_command_tests
}  // namespace snapkv::test
