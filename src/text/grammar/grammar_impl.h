// SPDX-License-Identifier: MIT
// The inside of Grammar and GrammarVocabulary, for GrammarMatcher.
#pragma once

#include <string>
#include <vector>

#include "snapkv/grammar.h"
#include "text/grammar/automaton.h"
#include "text/grammar/token_trie.h"

namespace snapkv {

struct Grammar::Impl {
  std::string name;
  std::string source;
  grammar::Automaton automaton;
};

struct GrammarVocabulary::Impl {
  std::vector<std::string> pieces;  // by id; empty: never allowed
  std::vector<int32_t> end_tokens;
  std::vector<bool> is_end;  // by id
  grammar::TokenTrie trie;
};

}  // namespace snapkv
