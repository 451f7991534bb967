// SPDX-License-Identifier: MIT
// Vocab: the tokens and what is known of each, which all kinds of tokenizers share. Read from a
// GGUF file's `tokenizer.ggml.*` metadata with llama.cpp's defaults, or filled from a
// tokenizer.json.
//
//   tokens          texts by id            token_type    TokenType by id
//   scores          merge priority by id (SentencePiece kinds)
//   bos_token_id, eos_token_id, eot_token_id, eom_token_id, unknown_token_id, padding_token_id,
//   fim_pre_token_id, fim_suf_token_id, fim_mid_token_id, fim_pad_token_id, fim_rep_token_id,
//   fim_sep_token_id
//   add_bos_token, add_eos_token, add_space_prefix
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "snapkv/fill_in.h"
#include "snapkv/tokenizer.h"

namespace snapkv {

class GgufFile;

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
  int32_t pad = -1;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  bool needs_scores = false;
  bool needs_types = false;  // otherwise all tokens are normal where there are none
};

/// White space beside a special token that belongs to it and disappears with it.
struct TokenStrip {
  bool left = false;
  bool right = false;
};

/// Ids that the metadata names, -1 for none: tokens whose texts can tell their meaning otherwise.
struct NamedTokens {
  int32_t eot = -1, eom = -1;
  int32_t fim_pre = -1, fim_suf = -1, fim_mid = -1, fim_pad = -1, fim_rep = -1, fim_sep = -1;
};

struct Vocab {
  std::vector<std::string> tokens;  // [n_vocab]
  std::vector<float> scores;        // [n_vocab], empty unless needed
  std::vector<TokenType> types;     // [n_vocab]
  std::vector<bool> ends;           // [n_vocab]: generation ends at it
  // Control tokens that belong to what the model says, and are shown: gpt-oss' <|channel|>.
  std::vector<bool> visible;  // [n_vocab]
  // Views of `tokens`; an empty text has no entry.
  std::unordered_map<std::string_view, int32_t> ids;
  std::unordered_map<int32_t, TokenStrip> strips;  // of those tokens that have any
  SpecialTokens special;
  FillInTokens fill_in;
  bool add_space_prefix = false;

  Vocab() = default;
  Vocab(Vocab&&) = default;
  Vocab& operator=(Vocab&&) = default;
  Vocab(const Vocab&) = delete;  // `ids` views `tokens`
  Vocab& operator=(const Vocab&) = delete;

  /// Throws Error{kBadModel} naming the key that is missing, of the wrong type or inconsistent.
  static Vocab from_gguf(const GgufFile& file, const VocabDefaults& defaults);

  /// Fills `ids`. Throws Error{kBadModel} that begins with `origin` when two tokens have one text.
  void index(const std::string& origin);
  /// Fills `ends`, `visible`, `fill_in` and special.eot from special.eos, `named` and the texts
  /// that models use; corrects the types of tokens whose text says that they are control tokens.
  /// `types` and `ids` must be there.
  void find_ends(NamedTokens named);

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  /// Id of a text, -1 when it is no token.
  int32_t find(std::string_view text) const {
    const auto at = ids.find(text);
    return at == ids.end() ? -1 : at->second;
  }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
  /// Throws Error{kUsage} for an id that is no token's.
  void check(int32_t id) const;
  /// Control and unknown tokens: no text becomes one unless it is asked for, and they have none.
  bool is_special(int32_t id) const {
    return types[id] == TokenType::kControl || types[id] == TokenType::kUnknown;
  }
  bool is_end(int32_t id) const { return contains(id) && ends[id]; }
  TokenStrip strip_of(int32_t id) const {
    const auto at = strips.find(id);
    return at == strips.end() ? TokenStrip() : at->second;
  }
};

}  // namespace snapkv
