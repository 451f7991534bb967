// SPDX-License-Identifier: MIT
#include "base/file_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/error.h"
#include "tests/support/expect_error.h"

namespace snapkv {
namespace {

std::string empty_folder() {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "file_buffer_test";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directory(dir);
  return dir.string();
}

TEST(FileBufferTest, HoldsItsValuesWhenPagesAreReleased) {
  const std::string dir = empty_folder();
  const size_t n = 300000;  // not a whole number of pages
  const Buffer buffer = make_file_buffer(dir, n, "test");
  auto* data = static_cast<unsigned char*>(buffer.data());
  ASSERT_EQ(buffer.bytes(), n);
  EXPECT_TRUE(std::filesystem::is_empty(dir));  // it has no name
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(data[i], 0);
    data[i] = static_cast<unsigned char>(i * 7);
  }
  release_pages(data + 100, 50000);
  release_pages(data, n);
  prefetch_pages(data + 5000, 100000);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(data[i], static_cast<unsigned char>(i * 7)) << i;
}

TEST(FileBufferTest, ZeroBytesIsEmpty) {
  const Buffer buffer = make_file_buffer("/nowhere", 0, "test");
  EXPECT_FALSE(buffer);
  release_pages(nullptr, 0);
}

TEST(FileBufferTest, ErrorsNameTheFolder) {
  test::expect_error(ErrorCode::kRuntime, {"hidden states: cannot make a file in '/nowhere'"},
                     [] { make_file_buffer("/nowhere", 100, "hidden states"); });
  const std::string dir = empty_folder();
  // More than any file or disk can hold.
  test::expect_error(ErrorCode::kDoesNotFit, {dir}, [&] {
    make_file_buffer(dir, static_cast<size_t>(std::numeric_limits<int64_t>::max()), "test");
  });
  EXPECT_TRUE(std::filesystem::is_empty(dir));
}

}  // namespace
}  // namespace snapkv
