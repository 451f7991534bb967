// SPDX-License-Identifier: MIT
// Variant: a std::variant that can be copied safely when memory runs out.
#pragma once

#include <type_traits>
#include <variant>

namespace snapkv {

/// If a string or vector in it cannot be allocated, the copy constructor of libstdc++ 12's
/// std::variant goes on to destroy an object that does not exist. Its assignment does not, so
/// copies are made by assignment.
template <typename First, typename... Others>
class Variant : public std::variant<First, Others...> {
  using Base = std::variant<First, Others...>;
  static_assert(std::is_nothrow_default_constructible_v<First>);

 public:
  using Base::Base;
  using Base::operator=;
  Variant() = default;
  Variant(const Variant& other) : Base() { Base::operator=(other); }
  Variant(Variant&&) = default;
  Variant& operator=(const Variant&) = default;
  Variant& operator=(Variant&&) = default;
  ~Variant() = default;
};

}  // namespace snapkv
