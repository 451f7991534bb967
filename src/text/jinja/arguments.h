// SPDX-License-Identifier: MIT
// bind(): matches the arguments of a call with the parameters of a built-in filter, test, method or
// function. Also conversions of single arguments. Errors name the built-in and the argument.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

/// The values of `names` in their order; nullopt for those that are not given. Throws if there are
/// too many arguments, if one is unknown or given twice, or if one of the first `n_required` is
/// missing.
template <size_t N>
std::array<std::optional<Value>, N> bind(std::string_view callee,
                                         const std::string_view (&names)[N], size_t n_required,
                                         Arguments& args) {
  if (args.positional.size() > N) {
    fail(ErrorCode::kUsage, "{} takes no more than {} arguments, not {}", callee, N,
         args.positional.size());
  }
  std::array<std::optional<Value>, N> values;
  for (size_t i = 0; i < N; ++i) {
    std::optional<Value> named = args.take(names[i]);
    if (i < args.positional.size()) {
      if (named) fail(ErrorCode::kUsage, "{} got two values for '{}'", callee, names[i]);
      values[i] = std::move(args.positional[i]);
    } else {
      values[i] = std::move(named);
    }
    if (!values[i] && i < n_required) {
      fail(ErrorCode::kUsage, "{} needs an argument '{}'", callee, names[i]);
    }
  }
  if (!args.keyword.empty()) {
    fail(ErrorCode::kUsage, "{} has no argument '{}'", callee, args.keyword.front().first);
  }
  return values;
}

/// Throws if there are any arguments.
void bind_none(std::string_view callee, const Arguments& args);

/// The argument as an integer, `otherwise` if it is not given. Throws if it is not an integer.
int64_t integer_argument(std::string_view callee, std::string_view name,
                         const std::optional<Value>& value, int64_t otherwise);
/// The argument as a text. Throws if it is not a text.
TextPtr text_argument(std::string_view callee, std::string_view name, const Value& value);
/// The same; nullptr if the argument is not given or is none.
TextPtr optional_text(std::string_view callee, std::string_view name,
                      const std::optional<Value>& value);
/// The argument's truth as in Python; false if it is not given.
bool flag_argument(const std::optional<Value>& value);

}  // namespace snapkv::jinja
