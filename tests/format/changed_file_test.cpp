// SPDX-License-Identifier: MIT
// Files that change while they are in use: what check_unchanged() notices, what a copy is protected
// from, and which file mapped_file_at() finds.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "format/mmap_file.h"
#include "snapkv/mapped_file.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv::test {
namespace {

std::vector<std::byte> pattern(size_t n, unsigned seed) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  return bytes;
}

/// Changes the time of modification, whatever the clock's resolution.
void touch(const std::string& path) {
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  const timespec times[] = {info.st_atim, {info.st_mtim.tv_sec, info.st_mtim.tv_nsec ^ 1}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class ChangedFileTest : public testing::Test {
 protected:
  void SetUp() override { write_bytes(path_, pattern(20000, 1)); }
  const TempDir dir_;
  const std::string path_ = dir_ / "file";
};

TEST_F(ChangedFileTest, UnchangedIsNoError) {
  const MmapFile mapped(path_);
  std::ifstream(path_).get();  // reading does not count as a change
  mapped.check_unchanged();
}

TEST_F(ChangedFileTest, NoticesAnotherTimeOfModification) {
  MmapFile mapped(path_);
  touch(path_);
  expect_error(ErrorCode::kBadModel, {path_, "written to"}, [&] { mapped.check_unchanged(); });
  const MmapFile moved(std::move(mapped));
  expect_error(ErrorCode::kBadModel, {path_}, [&] { moved.check_unchanged(); });
}

TEST_F(ChangedFileTest, NoticesAnotherSize) {
  for (const size_t size : {19999u, 20001u}) {
    write_bytes(path_, pattern(20000, 1));
    const MmapFile mapped(path_);
    std::filesystem::resize_file(path_, size);
    expect_error(ErrorCode::kBadModel, {path_, "20000", std::to_string(size)},
                 [&] { mapped.check_unchanged(); });
  }
}

TEST_F(ChangedFileTest, AReplacedFileIsStillTheOneThatWasOpened) {
  const MmapFile mapped(path_);
  write_bytes(dir_ / "other", pattern(30000, 2));
  std::filesystem::rename(dir_ / "other", path_);
  mapped.check_unchanged();
  EXPECT_EQ(mapped.bytes().size(), 20000u);
  EXPECT_EQ(mapped.bytes()[19999], pattern(20000, 1)[19999]);
}

TEST_F(ChangedFileTest, ACopyDoesNotDependOnTheFile) {
  const MmapFile copy(path_, FileAccess::copied);
  std::filesystem::resize_file(path_, 10);
  copy.check_unchanged();
  copy.dont_need(0, 20000);
  const auto expected = pattern(20000, 1);
  ASSERT_EQ(copy.bytes().size(), expected.size());
  EXPECT_EQ(std::memcmp(copy.bytes().data(), expected.data(), expected.size()), 0);
}

TEST_F(ChangedFileTest, ACopyOfWhatDoesNotFitIsRefused) {
  GgufWriter writer;
  writer.add_f32("w", {8}, std::vector<float>(8));
  writer.write(path_);
  const uint64_t bytes = std::filesystem::file_size(path_);
  const ReadOptions enough{FileAccess::copied, false, bytes};
  EXPECT_EQ(GgufFile::open(path_, enough).file_bytes(), bytes);
  const ReadOptions less{FileAccess::copied, false, bytes - 1};
  expect_error(ErrorCode::kDoesNotFit, {path_, "copy"}, [&] { GgufFile::open(path_, less); });
}

TEST_F(ChangedFileTest, MappingsAreFoundByAddress) {
  const void* begin = nullptr;
  {
    MmapFile first(path_);
    write_bytes(dir_ / "other", pattern(5000, 2));
    const MmapFile other(dir_ / "other");
    const auto* data = first.bytes().data();
    begin = data;
    EXPECT_STREQ(mapped_file_at(data), path_.c_str());
    EXPECT_STREQ(mapped_file_at(data + 19999), path_.c_str());
    EXPECT_STREQ(mapped_file_at(other.bytes().data() + 17), (dir_ / "other").c_str());
    const MmapFile moved(std::move(first));
    EXPECT_STREQ(mapped_file_at(data), path_.c_str());
    const MmapFile copy(path_, FileAccess::copied);
    EXPECT_EQ(mapped_file_at(copy.bytes().data()), nullptr);
    EXPECT_EQ(mapped_file_at(&copy), nullptr);
  }
  EXPECT_EQ(mapped_file_at(begin), nullptr);
}

}  // namespace
}  // namespace snapkv::test
