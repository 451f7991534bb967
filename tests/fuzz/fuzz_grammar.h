// SPDX-License-Identifier: MIT
// use_hostile_grammar: does with arbitrary bytes what a server does with a request's grammar or
// schema.
#pragma once

#include <string_view>

namespace snapkv::test {

/// How far the bytes were accepted.
enum class GrammarUse { kNoGrammar, kRefusedText, kText };

/// `bytes`: 'g' and a grammar, 's' and a schema, or 'r' and a regular expression; a zero byte; and
/// a text to match. Errors are expected and swallowed; anything else is a bug that crashes.
GrammarUse use_hostile_grammar(std::string_view bytes);

}  // namespace snapkv::test
