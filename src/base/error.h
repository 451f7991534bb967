// SPDX-License-Identifier: MIT
// fail(): build a message and throw snapkv::Error. For bad input and the outside world; programmer
// errors use base/check.h.
#pragma once

#include <fmt/core.h>

#include <utility>

#include "snapkv/error.h"

namespace snapkv {

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace snapkv
