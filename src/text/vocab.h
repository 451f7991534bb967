// SPDX-License-Identifier: MIT
// Vocab: the `tokenizer.ggml.*` metadata that all kinds of tokenizers share, checked and with
// llama.cpp's defaults. Made by a tokenizer's constructor.
//
//   tokens          texts by id            token_type    TokenType by id
//   scores          merge priority by id (SentencePiece kinds)
//   bos_token_id, eos_token_id, eot_token_id, eom_token_id, unknown_token_id, padding_token_id
//   add_bos_token, add_eos_token, add_space_prefix
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace snapkv {

/// Kinds of tokens, numbered as in the file.
enum class TokenType : uint8_t {
  kUndefined,
  kNormal,
  kUnknown,
  kControl,      // has a meaning, no text: <s>, <|im_end|>
  kUserDefined,  // text that is always one token
  kUnused,
  kByte,  // "<0x0A>": one byte of a character that has no token
};

/// What a kind of tokenizer assumes where the metadata says nothing.
struct VocabDefaults {
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t unk = -1;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  bool needs_scores = false;
};

struct Vocab {
  std::vector<std::string> tokens;  // [n_vocab]
  std::vector<float> scores;        // [n_vocab], empty unless needed
  std::vector<TokenType> types;     // [n_vocab]
  std::vector<bool> ends;           // [n_vocab]: generation ends at it
  // Views of `tokens`; an empty text has no entry.
  std::unordered_map<std::string_view, int32_t> ids;
  SpecialTokens special;
  bool add_space_prefix = false;
  bool strip_after_special = false;  // white space after a special token is dropped (Phi-3)

  Vocab() = default;
  Vocab(Vocab&&) = default;
  Vocab& operator=(Vocab&&) = default;
  Vocab(const Vocab&) = delete;  // `ids` views `tokens`
  Vocab& operator=(const Vocab&) = delete;

  /// Throws Error{kBadModel} naming the key that is missing, of the wrong type or inconsistent.
  static Vocab from_gguf(const GgufFile& file, const VocabDefaults& defaults);

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  /// Id of a text, -1 when it is no token.
  int32_t find(std::string_view text) const {
    const auto at = ids.find(text);
    return at == ids.end() ? -1 : at->second;
  }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
};

}  // namespace snapkv
