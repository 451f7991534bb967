// SPDX-License-Identifier: MIT
// The library's log: messages go to a sink that the program sets, or are dropped if there is none.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string_view>

#include "snapkv/log.h"

namespace snapkv {

/// Passes `message` to the sink, if there is one.
void log_message(LogLevel level, std::string_view message);

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace snapkv
