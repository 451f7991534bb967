// SPDX-License-Identifier: MIT
// write_file: writes the whole file or nothing, whatever goes wrong.
#include "base/write_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "base/atomic_file.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

class WriteFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "write_file_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    path_ = folder_ + "/page.html";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int64_t n_files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }
  std::string folder_, path_;
};

TEST_F(WriteFile, MakesAndReplacesFiles) {
  umask(027);
  write_file(path_, "one");
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  chmod(path_.c_str(), 0604);
  write_file(path_, std::string(100000, 'x') + '\0');
  EXPECT_EQ(content(path_).size(), 100001u);
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0604u) << "the file's own mode stays";
  EXPECT_EQ(n_files(), 1);
}

TEST_F(WriteFile, WhatKilledProcessesLeftIsRemoved) {
  AtomicFile writing(path_, /*overwrite=*/true);
  for (const char* left : {"/a.kv.tmp-12345-0", "/b.tmp-1-17"}) {
    std::ofstream(folder_ + left) << "half";
  }
  for (const char* other :
       {"/c.kv", "/.tmp-1-1", "/d.tmp-", "/e.tmp-x-1", "/f.tmp-1-", "/g.tmp-1"}) {
    std::ofstream(folder_ + other) << "whole";
  }
  std::filesystem::create_directory(folder_ + "/h.tmp-1-1");
  EXPECT_EQ(remove_abandoned_files(folder_), 2);
  EXPECT_EQ(n_files(), 8) << "the other six, the folder, and the file that is being written";
  writing.commit();
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(remove_abandoned_files(folder_ + "/none"), 0);
}

TEST_F(WriteFile, WhatADyingProcessWasWritingIsRemoved) {
  AtomicFile one(path_, /*overwrite=*/true), two(folder_ + "/other", true);
  {
    AtomicFile three(folder_ + "/third", true);
    three.commit();
  }
  EXPECT_EQ(n_files(), 3);
  remove_temporary_files();
  EXPECT_EQ(n_files(), 1);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/third"));
}

TEST_F(WriteFile, SaysBeforehandWhatCannotBeWritten) {
  check_can_write(path_, true);
  EXPECT_EQ(n_files(), 0);
  write_file(path_, "one");
  check_can_write(path_, true);
  expect_error(ErrorCode::kUsage, {"page.html", "exists"}, [&] { check_can_write(path_, false); });
  expect_error(ErrorCode::kUsage, {"not a regular file"}, [&] { check_can_write(folder_, true); });
  expect_error(ErrorCode::kRuntime, {"none/x", "No such file"},
               [&] { check_can_write(folder_ + "/none/x", true); });
}

TEST_F(WriteFile, TakesTheLongestNames) {
  const std::string path = folder_ + "/" + std::string(255, 'n');
  write_file(path, "one");
  EXPECT_EQ(content(path), "one");
  EXPECT_EQ(n_files(), 1);
}

TEST_F(WriteFile, FollowsLinksAndWritesToDevices) {
  write_file(path_, "one");
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink("page.html", link);
  write_file(link, "two");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(path_), "two");
  AtomicFile file(link, /*overwrite=*/true);
  file.write(std::as_bytes(std::span("2nd")));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(content(path_), std::string("2nd\0", 4));
  expect_error(ErrorCode::kUsage, {"page.html", "exists"}, [&] { AtomicFile(link, false); });
  std::filesystem::remove(path_);
  expect_error(ErrorCode::kUsage, {link, "a link to nothing"}, [&] { AtomicFile(link, true); });
  expect_error(ErrorCode::kUsage, {link, "a link to nothing"}, [&] { write_file(link, "x"); });
  EXPECT_EQ(n_files(), 1);
  write_file("/dev/null", "three");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  expect_error(ErrorCode::kRuntime, {"can't write '/dev/full': No space"},
               [] { write_file("/dev/full", "x"); });
}

TEST_F(WriteFile, LeavesTheOldFileWhenItFails) {
  write_file(path_, "old");
  const auto write_beyond_limit = [&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {3000, 3000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path_, std::string(5000, 'x'));
    } catch (const Error& e) {
      _exit(e.code() == ErrorCode::kRuntime ? 7 : 8);
    }
    _exit(9);
  };
  EXPECT_EXIT(write_beyond_limit(), testing::ExitedWithCode(7), "");
  EXPECT_EQ(content(path_), "old");
  EXPECT_EQ(n_files(), 1);
  expect_error(ErrorCode::kRuntime, {"/none/page.html", "No such file"},
               [&] { write_file(folder_ + "/none/page.html", "x"); });
}

}  // namespace
}  // namespace snapkv::test
