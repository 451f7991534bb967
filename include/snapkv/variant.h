// SPDX-License-Identifier: MIT
// Variant: a std::variant that may be copied where there is no memory. Used by PolicyValue and by
// the metadata of model files.
#pragma once

#include <type_traits>
#include <variant>

namespace snapkv {

/// Where a string or vector in it finds no memory, the copy constructor of libstdc++ 12's
/// std::variant goes on to destroy what is not there. Its assignment does not, so copies are made
/// with that.
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
