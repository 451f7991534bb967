// SPDX-License-Identifier: MIT
// RecordFile: records are found again, torn ends are repaired, and other files are refused.
#include "eval/common/record_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

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
  EXPECT_EQ(again.at("a").at("score").number(), 0.5);
}

TEST_F(RecordFileTest, CutsOffATornLine) {
  const std::string whole = "{\"key\":\"a\"}\n";
  const std::string torn = R"({"key":"b \"c\" \\","id":"d","score":1})";
  for (size_t n = 1; n <= torn.size(); ++n) {  // at the end only the newline is missing
    write(whole + torn.substr(0, n));
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

// A file without a newline at its end may be the only copy of a user's text.
TEST_F(RecordFileTest, CutsOffNothingButRecords) {
  for (const char* line : {"my only copy", "[1, 2]", "{}", "{\"key\": \"a\"}", "{\"key\":\"a\"}",
                           "{\"key\":\"a\\\"\",\"value\":\"b", "{\"keys\":1", "\xff"}) {
    for (const std::string& whole : {std::string(), std::string("{\"key\":\"a\"}\n")}) {
      SCOPED_TRACE(whole + line);
      write(whole + line);
      const std::string place = path_ + (whole.empty() ? ":1:" : ":2:");
      test::expect_error(ErrorCode::kUsage, {place, "no record"}, [&] { RecordFile(path_, true); });
      EXPECT_EQ(content(), whole + line);
    }
  }
}

TEST_F(RecordFileTest, RefusesNumbersAndNestingBeyondAll) {
  for (const std::string& value :
       {std::string("1e999"), std::string(100, '[') + std::string(100, ']'),
        "\"\\\"\"," + std::string(65, '[')}) {
    write("{\"key\":\"a\"}\n{\"key\":\"b\",\"x\":" + value + "}\n");
    test::expect_error(ErrorCode::kUsage, {path_ + ":2: no record"},
                       [&] { RecordFile(path_, true); });
  }
  write("{\"key\":\"a\",\"x\":\"\\\"" + std::string(200, '[') + "\"}\n");  // brackets in a string
  EXPECT_EQ(RecordFile(path_, true).size(), 1u);
}

TEST_F(RecordFileTest, OneWriterAtATime) {
  RecordFile first(path_, true);
  for (const bool resume : {true, false}) {
    test::expect_error(ErrorCode::kUsage, {path_, "process " + std::to_string(getpid())},
                       [&] { RecordFile(path_, resume); });
  }
  first.append({{"key", "a"}});
  EXPECT_EQ(content(), "{\"key\":\"a\"}\n");
}

TEST_F(RecordFileTest, LeavesNothingWhenNothingWasWritten) {
  RecordFile(path_, false);
  EXPECT_FALSE(std::filesystem::exists(path_));
  write("");  // a file that the user made
  RecordFile(path_, true);
  EXPECT_TRUE(std::filesystem::exists(path_));
  RecordFile(path_, true).append({{"key", "a"}});
  EXPECT_EQ(content(), "{\"key\":\"a\"}\n");
}

TEST_F(RecordFileTest, NoticesThatItsFileIsGone) {
  const std::string folder = testing::TempDir() + "record_file_folder", path = folder + "/a.jsonl";
  std::filesystem::create_directory(folder);
  {
    RecordFile file(path, false);
    file.append({{"key", "a"}});
    std::filesystem::remove_all(folder);
    test::expect_error(ErrorCode::kRuntime, {path, "removed"}, [&] {
      file.append({{"key", "b"}});
    });
    EXPECT_FALSE(file.contains("b"));
    write("");
    std::filesystem::create_directory(folder);
    std::filesystem::rename(path_, path);  // another file takes its name
    test::expect_error(ErrorCode::kRuntime, {path, "replaced"}, [&] {
      file.append({{"key", "b"}});
    });
  }
  EXPECT_TRUE(std::filesystem::exists(path)) << "not this run's to remove";
  std::filesystem::remove_all(folder);
}

TEST_F(RecordFileTest, WritesToDevicesAndPipesToo) {
  RecordFile null("/dev/null", false), again("/dev/null", true);
  null.append({{"key", "a"}});
  EXPECT_EQ(null.size(), 1u);
  RecordFile full("/dev/full", false);
  test::expect_error(ErrorCode::kRuntime, {"/dev/full", "No space left"}, [&] {
    full.append({{"key", "a"}});
  });
  EXPECT_EQ(full.size(), 0u);
}

// A disk becomes full in the middle of a record. This runs in a separate process, whose files may
// not grow beyond a limit.
TEST_F(RecordFileTest, AWriteThatFailsLeavesNoPartOfARecord) {
  const Json small = {{"key", "a"}}, large = {{"key", "b"}, {"text", std::string(5000, 'x')}};
  RecordFile(path_, false).append(small);
  const auto append_beyond_limit = [&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {3000, 3000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      RecordFile file(path_, true);
      file.append(large);
    } catch (const Error& e) {
      const bool named = std::string(e.what()).find(path_ + ": can't be written") == 0;
      _exit(e.code() == ErrorCode::kRuntime && named ? 7 : 8);
    }
    _exit(9);
  };
  EXPECT_EXIT(append_beyond_limit(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(content(), "{\"key\":\"a\"}\n");
  RecordFile again(path_, true);
  EXPECT_FALSE(again.repaired());
  again.append(large);
  EXPECT_EQ(again.size(), 2u);
}

TEST_F(RecordFileTest, NamesTheFieldOfADamagedRecord) {
  write(
      "{\"key\":\"a\"}\n"
      "{\"key\":\"b\",\"score\":\"high\",\"big\":1e30,\"huge\":1e308,\"less\":-1,\"list\":[1,{"
      "\"x\":null}],"
      "\"long\":\"" +
      std::string(200, 'y') + "\"}\n");
  const RecordFile file(path_, true);
  const auto expect = [&](std::initializer_list<std::string_view> words, const auto& read) {
    test::expect_error(ErrorCode::kUsage, {path_ + ":2:"}, [&] { read(file.at("b")); });
    test::expect_error(ErrorCode::kUsage, words, [&] { read(file.at("b")); });
  };
  using Field = JsonField;
  expect({"field score", "\"high\"", "a number"}, [](Field r) { r.at("score").number(); });
  expect({"field score", "whole number"}, [](Field r) { r.at("score").integer(); });
  expect({"field score", "true or false"}, [](Field r) { r.at("score").boolean(); });
  expect({"field score", "an array"}, [](Field r) { r.at("score").at(0); });
  expect({"field score", "an object"}, [](Field r) { r.at("score").at("x"); });
  expect({"field speed is missing"}, [](Field r) { r.at("speed"); });
  expect({"field big", "between 0 and 1"}, [](Field r) { r.at("big").number(0, 1); });
  expect({"field big", "whole number"}, [](Field r) { r.at("big").integer(); });
  expect({"field huge", "between"}, [](Field r) { r.at("huge").number(); });
  expect({"field less", "between 0 and"}, [](Field r) { r.at("less").amount(); });
  expect({"field list[0]", "between 2 and 3"}, [](Field r) { r.at("list").at(0).integer(2, 3); });
  expect({"field list[1].x", "null", "a text"}, [](Field r) { r.at("list").at(1).at("x").text(); });
  expect({"field list", "at least 3 values"}, [](Field r) { r.at("list").at(2); });
  expect({"field list", "at least 0 values"}, [](Field r) { r.at("list").at(-1); });
  expect({"field long", "yyy...", "a number"}, [](Field r) { r.at("long").number(); });
  EXPECT_TRUE(file.at("b").at("list").at(1).at("x").is_null());
  test::expect_error(ErrorCode::kUsage, {":1:", "field score is missing"},
                     [&] { file.at("a").at("score"); });
}

}  // namespace
}  // namespace snapkv::eval
