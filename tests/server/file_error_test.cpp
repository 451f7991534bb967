// SPDX-License-Identifier: MIT
// Messages about files, as clients get them.
#include "server/file_error.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>

#include "base/regular_file.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace {

using server::file_error_text;
using server::without_paths;

TEST(FileError, KeepsTheNamesOfFilesOnly) {
  EXPECT_EQ(without_paths("'/srv/kv/a.kv': it is damaged"), "'a.kv': it is damaged");
  EXPECT_EQ(without_paths("of models/x.gguf, not (../y.gguf)"), "of x.gguf, not (y.gguf)");
  EXPECT_EQ(without_paths("nothing to hide; /"), "nothing to hide; ");
  EXPECT_EQ(without_paths(""), "");
}

TEST(FileError, QuotesNoBytesOfADamagedFile) {
  const std::string text = "'/srv/a': it begins with \"root:x:0\", and \"more\"";
  EXPECT_EQ(file_error_text(Error(ErrorCode::kBadModel, text)), "'a': it begins with \"...\"");
  EXPECT_EQ(file_error_text(Error(ErrorCode::kUsage, "'/srv/a' is of \"needle\"")),
            "'a' is of \"needle\"");
}

TEST(FileError, APipeIsNoFile) {
  const std::string pipe = testing::TempDir() + "pipe.kv";
  std::remove(pipe.c_str());  // of an earlier run, when tests are repeated
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorCode::kUsage, {"pipe.kv", "not a regular file"},
               [&] { require_regular_file(pipe); });
  expect_error(ErrorCode::kUsage, {"not a regular file"},
               [&] { require_regular_file(testing::TempDir()); });
  EXPECT_NO_THROW(require_regular_file(testing::TempDir() + "none"));
}

}  // namespace
}  // namespace snapkv::test
