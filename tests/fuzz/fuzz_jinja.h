// SPDX-License-Identifier: MIT
// render_hostile: does with any bytes what the engine does with a template and a conversation. The
// fuzz target and the tests call it.
#pragma once

#include <string_view>

namespace snapkv::test {

/// How far the bytes got.
enum class Rendering { kNoTemplate, kError, kText };

/// `bytes`: a template, a zero byte, and a JSON object of variables ("{}" where there is none).
/// Errors are expected and swallowed; anything else is a bug that crashes.
Rendering render_hostile(std::string_view bytes);

}  // namespace snapkv::test
