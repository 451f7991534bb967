// SPDX-License-Identifier: MIT
// Where the library's messages go.
#pragma once

#include <functional>
#include <string_view>

namespace snapkv {

enum class LogLevel { kInfo, kWarn };
using LogSink = std::function<void(LogLevel, std::string_view message)>;

/// Sets the process-wide sink (thread-safe; an empty function drops all messages, the default).
void set_log_sink(LogSink sink);

}  // namespace snapkv
