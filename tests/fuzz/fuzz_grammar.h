// SPDX-License-Identifier: MIT
// use_hostile_grammar: does with any bytes what a server does with a request's grammar or schema.
// The fuzz target and the tests call it.
#pragma once

#include <string_view>

namespace snapkv::test {

/// How far the bytes got.
enum class GrammarUse { kNoGrammar, kRefusedText, kText };

/// `bytes`: 'g' and a grammar or 's' and a schema, a zero byte, and a text that is read by it.
/// Errors are expected and swallowed; anything else is a bug that crashes.
GrammarUse use_hostile_grammar(std::string_view bytes);

}  // namespace snapkv::test
