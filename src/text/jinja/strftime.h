// SPDX-License-Identifier: MIT
// format_time: a time as strftime_now() of chat templates shows it. Called by functions.cpp.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace snapkv::jinja {

/// Local time by a format of strftime, with English names. Throws for formats of more than some
/// kilobytes.
std::string format_time(std::string_view format, std::time_t time);

}  // namespace snapkv::jinja
