// SPDX-License-Identifier: MIT
// Calls as Llama 4, LFM2 and others write them: Python's, with literals as arguments,
// [get_weather(city="Rome", days=3), stop()].
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "chat/found_call.h"

namespace snapkv::chat {

/// The calls of a list, or of one call without brackets. Nothing where the text is none, or has
/// arguments without names, or values that are not literals.
std::optional<std::vector<FoundCall>> python_calls(std::string_view text);

}  // namespace snapkv::chat
