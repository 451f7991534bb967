// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timer.h"

namespace snapkv {
namespace {

TEST(ErrorTest, FailFormatsAndCarriesTheCode) {
  try {
    fail(ErrorCode::kBadModel, "'{}' has {}, expected {}", "x", 3, 4);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadModel);
    EXPECT_STREQ(e.what(), "'x' has 3, expected 4");
    return;
  }
  FAIL() << "no error";
}

TEST(ErrorTest, MentionsOptionsByWhatFrontEndsCallThem) {
  const auto flag = [](std::string_view option) { return "--" + std::string(option); };
  try {
    fail(ErrorCode::kUsage, "{}: {} is {}, and {} {}", "n_ctx.txt", OptionName("n_ctx"), 5,
         OptionName("budget", "kv_budget"), 7);
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "n_ctx.txt: n_ctx is 5, and budget 7");
    EXPECT_EQ(e.message(flag), "n_ctx.txt: --n_ctx is 5, and --kv_budget 7");
    ASSERT_EQ(e.mentions().size(), 2u);
    EXPECT_EQ(e.mentions()[0].option, "n_ctx");
    const Error within = e.prefixed("line 3: ");
    EXPECT_EQ(within.message(flag), "line 3: n_ctx.txt: --n_ctx is 5, and --kv_budget 7");
    EXPECT_EQ(within.code(), ErrorCode::kUsage);
  }
  const Error plain(ErrorCode::kRuntime, "n_ctx");
  EXPECT_EQ(plain.message(flag), "n_ctx");
  EXPECT_TRUE(plain.mentions().empty());
}

TEST(CheckTest, AbortsWithTheCondition) {
  SNAPKV_CHECK(1 + 1 == 2);
  EXPECT_DEATH(SNAPKV_CHECK(1 + 1 == 3), "1 \\+ 1 == 3");
}

TEST(LogTest, MessagesGoToTheSink) {
  std::vector<std::pair<LogLevel, std::string>> seen;
  set_log_sink([&](LogLevel level, std::string_view text) { seen.emplace_back(level, text); });
  log_info("{} layers", 3);
  log_warn("careful");
  set_log_sink({});
  log_info("dropped");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].first, LogLevel::kInfo);
  EXPECT_EQ(seen[0].second, "3 layers");
  EXPECT_EQ(seen[1].first, LogLevel::kWarn);
  EXPECT_EQ(seen[1].second, "careful");
}

TEST(TimerTest, NeverRunsBackwards) {
  Timer timer;
  double last = 0;
  for (int i = 0; i < 1000; ++i) {
    const double now = timer.seconds();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GE(timer.lap(), last);
}

}  // namespace
}  // namespace snapkv
