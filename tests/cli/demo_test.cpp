// SPDX-License-Identifier: MIT
// snapkv demo and eval needle: the real model finds the fact both with a full cache and with
// SnapKV.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "run_process.h"

namespace snapkv::test {
namespace demo_tests {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(Demo, BothCachesAnswerRightly) {
  const Result r = run({"demo", "-m", needle_model(), "--length", "2000", "--name", "Riga"});
  ASSERT_EQ(r.code, 0) << r.err;
  std::smatch fact;
  ASSERT_TRUE(std::regex_search(r.out, fact, std::regex("secret number of Riga is (\\d{5})\\.")));
  EXPECT_TRUE(
      std::regex_search(r.out, std::regex("answer +" + fact.str(1) + " +" + fact.str(1) + "\n")))
      << r.out;
  EXPECT_EQ(count(r.out, "right"), 2u) << r.out;
  EXPECT_EQ(count(r.out, "wrong"), 0u) << r.out;
  EXPECT_TRUE(
      std::regex_search(r.out, std::regex("K \\[1, 3, \\d{4}, 32\\] -> \\[1, 3, 128, 32\\]")))
      << r.out;
  EXPECT_EQ(count(r.out, "\x1b"), 0u);
  EXPECT_EQ(count(r.err, "\x1b"), 0u);
}

TEST(Demo, FindsTheModelBelowTheCurrentFolder) {
  Command here;
  here.args = {"demo", "--length", "400"};
  here.cwd = SNAPKV_SOURCE_DIR;
  const Result r = run(here);
  EXPECT_EQ(r.code, 0) << r.err;
}

TEST(Demo, TheSeedChoosesTheText) {
  const auto text = [](const char* seed) {
    const std::string out =
        run({"demo", "-m", needle_model(), "--length", "400", "--seed", seed}).out;
    return out.substr(0, out.find("full cache"));
  };
  EXPECT_EQ(text("5"), text("5"));
  EXPECT_NE(text("5"), text("6"));
}

TEST(EvalNeedle, PrintsATableWithoutAFile) {
  const Result r = run({"eval", "needle", "-m", needle_model(), "--lengths", "400,600", "--depths",
                        "2", "--budgets", "128", "--kernels", "1,15", "--kv-window", "16"});
  ASSERT_EQ(r.code, 0) << r.err;
  std::istringstream lines(r.out);
  std::vector<std::string> table;
  for (std::string line; std::getline(lines, line);) table.push_back(line);
  ASSERT_EQ(table.size(), 5u) << r.out;
  EXPECT_NE(table[2].find("| full"), std::string::npos) << r.out;
  EXPECT_EQ(count(table[2], "100.0%"), 3u) << r.out;
  EXPECT_EQ(count(table[4], "100.0%"), 3u) << "kernel 15:\n" << r.out;
}

TEST(EvalNeedle, ResumingNeedsAFile) {
  const Result r = run({"eval", "needle", "-m", needle_model(), "--resume"});
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_NE(r.err.find("--out"), std::string::npos) << r.err;
}

}  // namespace demo_tests
}  // namespace snapkv::test
