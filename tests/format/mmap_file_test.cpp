// SPDX-License-Identifier: MIT
#include "format/mmap_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/huge_pages.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"

namespace snapkv {
namespace {

using test::expect_error;
using test::TempDir;
using test::write_bytes;

std::vector<std::byte> pattern(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST(MmapFileTest, ShowsTheBytes) {
  const TempDir dir;
  const auto bytes = pattern(10000);
  write_bytes(dir / "file", bytes);
  const MmapFile file(dir / "file");
  EXPECT_TRUE(equal(file.bytes(), bytes));
}

TEST(MmapFileTest, MovesKeepTheAddress) {
  const TempDir dir;
  const auto bytes = pattern(5000);
  write_bytes(dir / "file", bytes);
  write_bytes(dir / "other", pattern(3));
  MmapFile a(dir / "file");
  const auto* address = a.bytes().data();
  MmapFile b(std::move(a));
  EXPECT_EQ(b.bytes().data(), address);
  MmapFile c(dir / "other");
  c = std::move(b);
  EXPECT_EQ(c.bytes().data(), address);
  EXPECT_TRUE(equal(c.bytes(), bytes));
}

TEST(MmapFileTest, HintsKeepTheContents) {
  const TempDir dir;
  const auto bytes = pattern(5 * 4096 + 17);
  write_bytes(dir / "file", bytes);
  const MmapFile file(dir / "file");
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{4096}, size_t{9000}, bytes.size() - 1,
                              bytes.size(), bytes.size() + 1, ~size_t{0}}) {
    for (const size_t length : {size_t{0}, size_t{1}, size_t{4096}, size_t{12000}, ~size_t{0}}) {
      file.will_need(offset, length);
      file.sequential(offset, length);
      file.dont_need(offset, length);
      ASSERT_TRUE(equal(file.bytes(), bytes)) << offset << " " << length;
    }
  }
}

TEST(MmapFileTest, HugePagesKeepContentsAndAddresses) {
  const size_t page = huge_page_size();
  if (page == 0) GTEST_SKIP() << "SKIPPED: this system has no transparent huge pages";
  const TempDir dir;
  const auto bytes = pattern(5 * page + 12345);
  write_bytes(dir / "file", bytes);
  MmapFile file(dir / "file");
  const auto* address = file.bytes().data();
  std::atomic<bool> stop{false};
  std::atomic<int> n_wrong{0};
  std::thread reader([&] {  // reads while pages are being exchanged
    while (!stop) n_wrong += equal(file.bytes(), bytes) ? 0 : 1;
  });
  size_t moved = 0;
  for (size_t begin = 0; begin < bytes.size(); begin += page + 4096) {
    const auto n = file.move_to_huge_pages(begin, page + 4096);
    ASSERT_TRUE(n);
    moved += *n;
    file.dont_need(0, bytes.size());  // must not lose what is only in memory
  }
  stop = true;
  reader.join();
  EXPECT_EQ(n_wrong, 0);
  EXPECT_EQ(moved % page, 0u);
  EXPECT_GE(moved, 4 * page);  // everything but the ends
  EXPECT_EQ(file.bytes().data(), address);
  EXPECT_TRUE(equal(file.bytes(), bytes));
  EXPECT_EQ(file.move_to_huge_pages(bytes.size(), page), std::optional<size_t>(0));
}

TEST(MmapFileTest, Missing) {
  const TempDir dir;
  expect_error(ErrorCode::kRuntime, {"nothing-here", "No such file"},
               [&] { MmapFile file(dir / "nothing-here"); });
}

TEST(MmapFileTest, Directory) {
  const TempDir dir;
  expect_error(ErrorCode::kRuntime, {"directory"}, [&] { MmapFile file(dir / ""); });
}

TEST(MmapFileTest, Empty) {
  const TempDir dir;
  write_bytes(dir / "file", {});
  expect_error(ErrorCode::kBadModel, {"file", "empty"}, [&] { MmapFile file(dir / "file"); });
}

TEST(MmapFileTest, FifoIsRefusedWithoutWaiting) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  expect_error(ErrorCode::kRuntime, {"fifo", "regular"}, [&] { MmapFile file(dir / "fifo"); });
}

TEST(MmapFileTest, Unreadable) {
  if (geteuid() == 0) GTEST_SKIP() << "SKIPPED: root reads every file; run as another user";
  const TempDir dir;
  write_bytes(dir / "file", pattern(10));
  ASSERT_EQ(chmod((dir / "file").c_str(), 0), 0);
  expect_error(ErrorCode::kRuntime, {"file", "Permission denied"},
               [&] { MmapFile file(dir / "file"); });
}

}  // namespace
}  // namespace snapkv
