// SPDX-License-Identifier: MIT
// Which words are values of a flag (--ignore-eos=false), as CLI11 decides. It says so by exceptions of
// std::stoll, from version 2.4 on by errno.
#pragma once

#include <CLI/CLI.hpp>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>

namespace snapkv::cli {

/// What CLI11 makes of `value` for a flag: "true", "false" or a number; nothing where it is none of these.
inline std::optional<std::string> flag_value_of(const CLI::Option& option, const std::string& value) {
  errno = 0;
  try {
    std::string flag = option.get_flag_value(option.get_lnames().front(), value);
    (void)CLI::detail::to_flag_value(flag);  // as the option's callback will
    if (errno == 0) return flag;
  } catch (const std::logic_error&) {
  } catch (const CLI::ParseError&) {
  }
  return std::nullopt;
}

}  // namespace snapkv::cli
