// SPDX-License-Identifier: MIT
// render_hostile: does with arbitrary bytes what the engine does with a template and a
// conversation.
#pragma once

#include <string_view>

namespace snapkv::test {

/// How far the bytes were accepted.
enum class Rendering { kNoTemplate, kError, kText };

/// `bytes`: a template, a zero byte, and a JSON object of variables ("{}" if it is missing). Errors
/// are expected and swallowed; anything else is a bug that crashes.
Rendering render_hostile(std::string_view bytes);

}  // namespace snapkv::test
