// SPDX-License-Identifier: MIT
#include "base/hash.h"

#include <gtest/gtest.h>

namespace snapkv {
namespace {

// From xxHash's table of test vectors: the hash names files, so that it may never change.
TEST(Hash64, PublishedVector) { EXPECT_EQ(hash64(""), 0x2d06800538d394c2u); }

TEST(Hash64, PiecesAreLikeTheWhole) {
  Hash64 hash;
  hash.add("foo");
  hash.add("bar");
  EXPECT_EQ(hash.value(), hash64("foobar"));
  hash.add(uint64_t{7});
  EXPECT_EQ(hash.value(), hash64(std::string_view("foobar\x7\0\0\0\0\0\0\0", 14)));
}

}  // namespace
}  // namespace snapkv
