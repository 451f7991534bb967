// SPDX-License-Identifier: MIT
// fail(): builds a message and throws snapkv::Error, for bad input and failures outside the
// program. base/check.h is for programmer errors.
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
