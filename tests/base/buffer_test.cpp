// SPDX-License-Identifier: MIT
#include "base/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"

namespace snapkv {
namespace {

void count_release(void*, size_t, void* context) { ++*static_cast<int*>(context); }

TEST(BufferTest, HostMemoryIsAlignedAndUsable) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{100000}}) {
    const Buffer b = Buffer::host(bytes, "test");
    ASSERT_TRUE(b);
    EXPECT_EQ(b.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % Buffer::kAlignment, 0u);
    std::memset(b.data(), 1, bytes);
  }
}

TEST(BufferTest, ZeroBytesIsEmpty) {
  const Buffer b = Buffer::host(0, "test");
  EXPECT_FALSE(b);
  EXPECT_EQ(b.bytes(), 0u);
}

TEST(BufferTest, TooMuchIsAnErrorThatNamesIt) {
  try {
    Buffer::host(std::numeric_limits<size_t>::max() - 3, "the cache");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDoesNotFit);
    EXPECT_NE(std::string(e.what()).find("the cache"), std::string::npos);
  }
}

TEST(BufferTest, MovesAndReleasesOnce) {
  int released = 0;
  int memory = 0;
  {
    Buffer a(&memory, sizeof(memory), count_release, &released);
    Buffer b(std::move(a));
    EXPECT_FALSE(a);  // NOLINT: a moved-from buffer is empty
    EXPECT_EQ(b.data(), &memory);
    Buffer c;
    c = std::move(b);
    EXPECT_FALSE(b);  // NOLINT
    EXPECT_EQ(c.bytes(), sizeof(memory));
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(BufferTest, AssignmentReleasesTheOldMemory) {
  int released_a = 0;
  int released_b = 0;
  int memory = 0;
  Buffer a(&memory, 4, count_release, &released_a);
  a = Buffer(&memory, 4, count_release, &released_b);
  EXPECT_EQ(released_a, 1);
  EXPECT_EQ(released_b, 0);
}

TEST(BufferTest, ViewsAreCheckedAgainstTheSize) {
  const Buffer b = Buffer::host(64, "test");
  const Tensor t = b.view(DType::f32, {3, 4}, 16);
  EXPECT_EQ(t.data, static_cast<char*>(b.data()) + 16);
  EXPECT_EQ(t.shape[1], 4);
  EXPECT_DEATH(b.view(DType::f32, {3, 4}, 20), "bytes_");
}

}  // namespace
}  // namespace snapkv
