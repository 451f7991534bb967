// SPDX-License-Identifier: MIT
#include "base/hash.h"

#include <gtest/gtest.h>

namespace snapkv {
namespace {

// Test vectors by the hash's authors (draft-eastlake-fnv, appendix C).
TEST(Fnv1a, PublishedVectors) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

TEST(Fnv1a, PiecesAreLikeTheWhole) {
  Fnv1a hash;
  hash.add("foo");
  hash.add("bar");
  EXPECT_EQ(hash.value(), fnv1a("foobar"));
  hash.add(uint64_t{7});
  EXPECT_EQ(hash.value(), fnv1a(std::string_view("foobar\x7\0\0\0\0\0\0\0", 14)));
}

}  // namespace
}  // namespace snapkv
