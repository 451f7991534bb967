// SPDX-License-Identifier: MIT
// Ctrl-C during prefill and decode: the command stops cleanly, prints the summary and exits with
// code 130.
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/files/cache_file.h"
#include "run_process.h"

namespace snapkv::test {
namespace interrupt_tests {

using Json = nlohmann::json;

// A prompt that nearly fills the model's context, in small chunks: prefill takes seconds on one
// thread.
Command long_prefill() {
  Command r;
  r.args = {"generate", "-m", needle_model(), "-p", rome_prompt(300), "-t", "1",
            "-n",       "4",  "--chunk",      "16", "--compute",      "f32"};
  r.terminal = true;  // the progress bar shows that prefill has begun
  r.interrupt_when = [](const std::string&, const std::string& err) {
    return err.find("prefill") != std::string::npos;
  };
  return r;
}

// An answer that ends only when the context is full.
Command long_decode() {
  Command r;
  r.args = {"generate", "-m", needle_model(), "-p", rome_prompt(4), "--ignore-eos",
            "-t",       "1",  "-n",           "-1", "--temp",       "0"};
  r.interrupt_when = [](const std::string& out, const std::string&) { return out.size() > 8; };
  return r;
}

TEST(Interrupt, PrefillStopsWithASummary) {
  const Result r = run(long_prefill());
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("stopped by Ctrl-C"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("peak RSS"), std::string::npos) << r.err;
}

TEST(Interrupt, OtherSignalsStopAsCtrlCDoes) {
  const std::pair<int, std::string> kSignals[] = {{SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
  for (const auto& [number, name] : kSignals) {
    Command prefill = long_prefill(), decode = long_decode();
    prefill.signal = decode.signal = number;
    for (const Command& command : {prefill, decode}) {
      const Result r = run(command);
      EXPECT_EQ(r.code, 128 + number) << r.err;
      EXPECT_NE(r.err.find("stopped by " + name), std::string::npos) << r.err;
      EXPECT_NE(r.err.find("peak RSS"), std::string::npos) << r.err;
    }
  }
}

// If the parent ignores these signals, as nohup ignores SIGHUP, the command should go on.
TEST(Interrupt, IgnoredSignalsStayIgnored) {
  for (const char* ignored : {"HUP", "TERM", "INT"}) {
    Command decode = long_decode();
    decode.shell = std::string("trap '' ") + ignored;
    decode.signal = ignored == std::string("HUP")    ? SIGHUP
                    : ignored == std::string("TERM") ? SIGTERM
                                                     : SIGINT;
    decode.args[9] = "100";
    const Result r = run(decode);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.err.find("stopped at --n-predict"), std::string::npos) << r.err;
  }
}

// The file must hold whole records, and the next run must continue after them.
TEST(Interrupt, EvaluationsKeepTheirRecords) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string out = make_folder() + "/out.jsonl";
    Command eval;
    eval.args = {"eval",      "needle", "-m",        needle_model(), "--lengths", "400",
                 "--samples", "500",    "--budgets", "64",           "--out",     out};
    eval.signal = number;
    eval.interrupt_when = [&](const std::string&, const std::string&) {
      const std::string records = read_file(out);
      return std::count(records.begin(), records.end(), '\n') > 2;
    };
    const Result r = run(eval);
    EXPECT_EQ(r.code, 128 + number) << r.err;
    EXPECT_EQ(r.out, "");
    std::istringstream lines(read_file(out));
    int n = 0;
    for (std::string line; std::getline(lines, line); ++n) EXPECT_TRUE(Json::accept(line)) << line;
    EXPECT_GT(n, 2);
  }
}

TEST(Interrupt, PrefillWithJsonSaysCancelled) {
  Command cancelled = long_prefill();
  cancelled.args.push_back("--json");
  const Result r = run(cancelled);
  EXPECT_EQ(r.code, 130) << r.err;
  const Json json = Json::parse(r.out);
  EXPECT_EQ(json.at("stop_reason"), "cancelled");
  EXPECT_EQ(json.at("tokens").size(), 0u);
  EXPECT_TRUE(json.at("kv").is_null());
}

TEST(Interrupt, DecodeStopsBetweenTokensWithASummary) {
  const Result r = run(long_decode());
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out.substr(0, 7), " 48213.");
  EXPECT_NE(r.err.find("stopped by Ctrl-C"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("KV cache"), std::string::npos) << r.err;
}

// Opening or reading a pipe that has no writer ends with the usual code of the signal.
TEST(Interrupt, WaitingForAPipeEndsWithTheSignalsCode) {
  const std::string fifo = make_folder() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::vector<std::vector<std::string>> kCommands = {
      {"generate", "-m", needle_model(), "-f", fifo},
      {"info", "-m", needle_model(), "--config", fifo},
      {"inspect", "-m", needle_model(), "-p", "Some words", "--json", fifo},
      {"eval", "fidelity", "-m", needle_model(), "--text", fifo},
      {"generate", "-m", needle_model(), "-p", "x", "--grammar-file", fifo}};
  const int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  int n = 0;
  for (const std::vector<std::string>& args : kCommands) {
    SCOPED_TRACE(args[0]);
    Command command;
    command.args = args;
    command.signal = kSignals[n++ % 3];
    command.interrupt_asleep = true;
    const Result r = run(command);
    EXPECT_EQ(r.code, 128 + command.signal) << r.err;
    EXPECT_NE(r.err.find("snapkv: "), std::string::npos) << "ended by the system: " << r.err;
    EXPECT_EQ(r.err.find("type_error"), std::string::npos) << r.err;
  }
}

/// Makes a saved cache of a single block of zeros, which take no space in a sparse file.
bool make_large_cache(const std::string& path, uint64_t block_bytes) {
  CacheStart start = {{}, kCacheVersion, CacheContents::session};
  std::copy(std::begin(kCacheMagic), std::end(kCacheMagic), start.magic);
  const CacheBlock block = {"rows", 0, 0, block_bytes, 0};
  CacheEnd end = {1, 0};
  const auto together = [&] {
    std::string all;
    const auto add = [&](const auto& part) {
      all.append(reinterpret_cast<const char*>(&part), sizeof(part));
    };
    add(start);
    add(block);
    add(end);
    return all;
  };
  const std::string unsummed = together();
  end.checksum = ends_checksum(std::as_bytes(std::span(unsummed)), sizeof(start));
  std::ofstream(path, std::ios::binary) << together().substr(0, sizeof(start));
  std::error_code error;
  std::filesystem::resize_file(path, kBlockAlignment + block_bytes, error);
  std::ofstream(path, std::ios::binary | std::ios::app) << together().substr(sizeof(start));
  return !error;
}

// The checksum of a large file takes long, and reading the saved rows may take longer.
TEST(Interrupt, ReadingALargeCacheStops) {
  const std::string folder = make_folder(), path = folder + "/large.cache";
  struct statfs system = {};
  ASSERT_EQ(statfs(folder.c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "a hole of tmpfs takes memory where it is read";
  if (!make_large_cache(path, uint64_t{256} << 30)) GTEST_SKIP() << "no file of this size";
  Command command;
  command.args = {"generate", "-m", needle_model(), "-p", "x", "--load-cache", path};
  const auto begin = std::chrono::steady_clock::now();
  command.interrupt_when = [begin](const std::string&, const std::string&) {
    return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(300);
  };
  const Result r = run(command);
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Interrupt, TheDemoStopsToo) {
  Command r;
  r.args = {"demo", "-m", needle_model(), "-t", "1", "--chunk", "16"};
  r.terminal = true;
  r.interrupt_when = [](const std::string&, const std::string& err) {
    return err.find("prefill") != std::string::npos;
  };
  EXPECT_EQ(run(r).code, 130);
}

}  // namespace interrupt_tests
}  // namespace snapkv::test
