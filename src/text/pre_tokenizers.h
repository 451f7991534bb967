// SPDX-License-Identifier: MIT
// The table of pre-tokenizers that GGUF files name in `tokenizer.ggml.pre`: split rules and what
// else depends on the name. Read by BpeTokenizer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/split_rules.h"

namespace snapkv {

struct PreTokenizer {
  std::span<const std::string_view> names;
  std::span<const SplitRule> rules;
  bool ignore_merges = false;  // a word that is a token is that token, whatever merges would make
  bool add_bos = false;        // where `tokenizer.ggml.add_bos_token` is absent
  bool has_bos = true;         // false: no BOS where `tokenizer.ggml.bos_token_id` is absent
  /// Tokens are UTF-8 with U+2581 for spaces, not GPT-2's spelling of bytes; bytes of what has no
  /// token are "<0x0A>".
  bool sentencepiece = false;
  bool whole_newlines = false;   // a run of newlines that is a token is that token
  bool always_adds_bos = false;  // whatever `tokenizer.ggml.add_bos_token` says
};

/// nullptr for a name that is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// All names, sorted, for messages: "afmoe, bailingmoe, ...".
std::string pre_tokenizer_names();
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace snapkv
