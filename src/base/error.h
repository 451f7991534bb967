// SPDX-License-Identifier: MIT
// fail(): builds a message and throws snapkv::Error, for bad input and failures outside the
// program. base/check.h is for programmer errors.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "snapkv/error.h"
#include "snapkv/option_table.h"

namespace snapkv {

/// An argument of fail(): the name of an option, which becomes a mention of the error.
struct OptionName {
  explicit OptionName(const OptionInfo& info) : shown(info.name), option(info.option) {}
  explicit OptionName(std::string_view name) : shown(name), option(name) {}
  OptionName(std::string_view s, std::string_view o) : shown(s), option(o) {}
  std::string_view shown;   // in the message: "budget"
  std::string_view option;  // "kv_budget"
};

/// An argument of fail(): a text that was formatted with OptionNames in it.
struct MarkedText {
  std::string_view text;
};
inline MarkedText marked(const std::string& text) { return {text}; }

/// Makes an error of a message in which names of options are marked as formatter<OptionName> does.
Error marked_error(ErrorCode code, std::string_view message);

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  std::string message = fmt::format(format, std::forward<Args>(args)...);
  if constexpr (((std::is_same_v<std::remove_cvref_t<Args>, OptionName> ||
                  std::is_same_v<std::remove_cvref_t<Args>, MarkedText>) ||
                 ...)) {
    throw marked_error(code, message);
  } else {
    throw Error(code, message);
  }
}

}  // namespace snapkv

template <>
struct fmt::formatter<snapkv::MarkedText> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const snapkv::MarkedText& marked, Context& context) const {
    return fmt::format_to(context.out(), "{}", marked.text);
  }
};

template <>
struct fmt::formatter<snapkv::OptionName> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const snapkv::OptionName& name, Context& context) const {
    return fmt::format_to(context.out(), "\x01{}\x02{}\x03", name.option, name.shown);
  }
};
