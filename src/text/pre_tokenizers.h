// SPDX-License-Identifier: MIT
// The pre-tokenizers that GGUF files name in `tokenizer.ggml.pre`: their split rules and the other
// settings that depend on the name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/split_rules.h"

namespace snapkv {

struct PreTokenizer {
  std::span<const std::string_view> names;
  std::span<const SplitRule> rules;
  bool ignore_merges = false;  // a word that is a token becomes that token, whatever merges give
  bool add_bos = false;        // the default of `tokenizer.ggml.add_bos_token`
  bool has_bos = true;         // false: no BOS unless the file has `tokenizer.ggml.bos_token_id`
  /// Tokens are UTF-8 with U+2581 for spaces, not in GPT-2's spelling of bytes; the bytes of text
  /// without a token become "<0x0A>".
  bool sentencepiece = false;
  bool whole_newlines = false;   // a run of newlines that is a token becomes that token
  bool always_adds_bos = false;  // whatever `tokenizer.ggml.add_bos_token` says
};

/// nullptr for a name that is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// All names, sorted, for messages: "afmoe, bailingmoe, ...".
std::string pre_tokenizer_names();
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace snapkv
