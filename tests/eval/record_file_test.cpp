// SPDX-License-Identifier: MIT
// RecordFile: what was written is found again, torn ends are repaired, foreign files refused.
#include "eval/common/record_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/expect_error.h"

namespace snapkv::eval {
namespace {

class RecordFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() +
            ".jsonl";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  std::string content() {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string path_;
};

TEST_F(RecordFileTest, ResumesWhatItWrote) {
  RecordFile(path_, false).append({{"key", "a"}, {"score", 0.5}, {"prompt", "one\ntwo \xff"}});
  const Json line = Json::parse(content());
  EXPECT_EQ(line.at("prompt"), "one\ntwo \xef\xbf\xbd");
  RecordFile again(path_, true);
  EXPECT_TRUE(again.contains("a"));
  EXPECT_FALSE(again.contains("b"));
  EXPECT_FALSE(again.repaired());
  EXPECT_EQ(again.at("a").at("score"), 0.5);
}

TEST_F(RecordFileTest, CutsOffATornLine) {
  const std::string whole = "{\"key\":\"a\"}\n";
  for (const char* torn : {"{\"ke", "{\"key\":\"b\"}"}) {
    write(whole + torn);
    RecordFile file(path_, true);
    EXPECT_TRUE(file.repaired());
    EXPECT_EQ(file.size(), 1u);
    EXPECT_EQ(content(), whole);
    file.append({{"key", "c"}});
    EXPECT_EQ(content(), whole + "{\"key\":\"c\"}\n");
  }
}

TEST_F(RecordFileTest, RefusesWhatItWouldSpoil) {
  write("{\"key\":\"a\"}\n");
  test::expect_error(ErrorCode::kUsage, {"--resume"}, [&] { RecordFile(path_, false); });
  write("{\"key\":\"a\"}\nno json\n");
  test::expect_error(ErrorCode::kUsage, {":2:"}, [&] { RecordFile(path_, true); });
  test::expect_error(ErrorCode::kRuntime, {"/no/such"},
                     [] { RecordFile("/no/such/folder/x.jsonl", false); });
}

}  // namespace
}  // namespace snapkv::eval
