// SPDX-License-Identifier: MIT
// Variant: copies that fail halfway leave nothing behind, and it can be used like a std::variant.
#include "snapkv/variant.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace snapkv::test {
namespace {

// Counts its objects. Copying throws while `refuse` is set, as copying a string without memory
// does.
struct Counted {
  static inline int n_alive = 0;
  static inline bool refuse = false;
  Counted() { ++n_alive; }
  Counted(const Counted&) {
    if (refuse) throw std::bad_alloc();
    ++n_alive;
  }
  Counted(Counted&&) noexcept { ++n_alive; }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() { --n_alive; }
};

TEST(Variant, ACopyWithoutMemoryLeavesNothing) {
  using Value = Variant<bool, std::string, Counted>;
  {
    const Value value = Counted();
    EXPECT_EQ(Counted::n_alive, 1);
    Counted::refuse = true;
    EXPECT_THROW(Value{value}, std::bad_alloc);
    Value other = std::string(40, 'a');
    EXPECT_THROW(other = value, std::bad_alloc);
    EXPECT_EQ(std::get<std::string>(other), std::string(40, 'a'));
    Counted::refuse = false;
    EXPECT_EQ(Counted::n_alive, 1);
    other = value;
    EXPECT_EQ(Counted::n_alive, 2);
  }
  EXPECT_EQ(Counted::n_alive, 0);
}

TEST(Variant, IsUsedAsAVariant) {
  using Value = Variant<bool, int64_t, std::string>;
  EXPECT_EQ(Value(), Value(false));
  Value value = int64_t{3};
  EXPECT_EQ(value.index(), 1u);
  value = std::string("three");
  const Value copy = value;
  EXPECT_EQ(copy, value);
  const Value moved = std::move(value);
  EXPECT_EQ(std::get<std::string>(moved), "three");
  EXPECT_TRUE(std::visit(
      [](const auto& held) { return std::is_same_v<std::decay_t<decltype(held)>, std::string>; },
      moved));
  EXPECT_EQ(std::get_if<int64_t>(&moved), nullptr);
}

}  // namespace
}  // namespace snapkv::test
