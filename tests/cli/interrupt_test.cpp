// SPDX-License-Identifier: MIT
// Ctrl-C during prefill and decode: stops cleanly, prints the summary, exits with 130.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run_process.h"

namespace snapkv::test {
namespace {

using Json = nlohmann::json;

// A prompt near the model's context, in small chunks: seconds of prefill on one thread.
Command long_prefill() {
  Command r;
  r.args = {"generate", "-m", needle_model(), "-p", rome_prompt(300), "-t", "1",
            "-n",       "4",  "--chunk",      "16", "--compute",      "f32"};
  r.terminal = true;  // so that the bar tells that prefill began
  r.interrupt_when = [](const std::string&, const std::string& err) {
    return err.find("prefill") != std::string::npos;
  };
  return r;
}

TEST(Interrupt, PrefillStopsWithASummary) {
  const Result r = run(long_prefill());
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("stopped by Ctrl-C"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("peak RSS"), std::string::npos) << r.err;
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
  Command decode;
  decode.args = {"generate", "-m", needle_model(), "-p", rome_prompt(4), "-n", "-1",
                 "-t",       "1",  "--temp",       "0",  "--ignore-eos"};
  decode.interrupt_when = [](const std::string& out, const std::string&) { return out.size() > 8; };
  const Result r = run(decode);
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_EQ(r.out.substr(0, 7), " 48213.");
  EXPECT_NE(r.err.find("stopped by Ctrl-C"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("KV cache"), std::string::npos) << r.err;
}

TEST(Interrupt, NeedleAndDemoStopToo) {
  for (const char* command : {"demo", "needle"}) {
    Command r;
    r.args = {command, "-m", needle_model(), "-t", "1", "--chunk", "16"};
    r.terminal = true;
    r.interrupt_when = [](const std::string&, const std::string& err) {
      return err.find("prefill") != std::string::npos || err.find("trial") != std::string::npos;
    };
    EXPECT_EQ(run(r).code, 130) << command;
  }
}

}  // namespace
}  // namespace snapkv::test
