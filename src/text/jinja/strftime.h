// SPDX-License-Identifier: MIT
// format_time: a time in the form that strftime_now() of chat templates gives it.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace snapkv::jinja {

/// Local time in a strftime format, with English names. Throws if the format or the result is
/// longer than 4 KiB.
std::string format_time(std::string_view format, std::time_t time);

}  // namespace snapkv::jinja
