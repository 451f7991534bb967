// SPDX-License-Identifier: MIT
// Vocab: the tokens and what is known about each, for all kinds of tokenizers. It is read from a
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

/// Kinds of tokens, with the numbers of the file format.
enum class TokenType : uint8_t {
  kUndefined,
  kNormal,
  kUnknown,
  kControl,      // has a meaning but no text: <s>, <|im_end|>
  kUserDefined,  // its text always becomes this one token
  kUnused,
  kByte,  // "<0x0A>": one byte of a character without a token
};

/// The defaults of a kind of tokenizer, used where the metadata does not say.
struct VocabDefaults {
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t unk = -1;
  int32_t pad = -1;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  bool needs_scores = false;
  bool needs_types = false;    // otherwise all tokens are normal where there are none
  bool ends_are_text = false;  // NamedTokens::are_text
};

/// Whether the white space to the left and right of a special token belongs to it and disappears
/// with it.
struct TokenStrip {
  bool left = false;
  bool right = false;
};

/// Ids that the metadata names, -1 for none; other tokens are recognised by their text.
struct NamedTokens {
  int32_t eot = -1, eom = -1;
  int32_t fim_pre = -1, fim_suf = -1, fim_mid = -1, fim_pad = -1, fim_rep = -1, fim_sep = -1;
  /// Whether a token that ends an answer because of its id, not of its text, keeps its type.
  bool are_text = false;
};

struct Vocab {
  std::vector<std::string> tokens;  // [n_vocab]
  std::vector<float> scores;        // [n_vocab], empty unless needed
  std::vector<TokenType> types;     // [n_vocab]
  std::vector<bool> ends;           // [n_vocab]: whether generation ends at the token
  // Control tokens that are part of the model's answer and shown: gpt-oss's <|channel|>.
  std::vector<bool> visible;  // [n_vocab]
  // Keys are views of `tokens`; an empty text has no entry.
  std::unordered_map<std::string_view, int32_t> ids;
  std::unordered_map<int32_t, TokenStrip> strips;  // only tokens that strip white space
  SpecialTokens special;
  FillInTokens fill_in;
  bool add_space_prefix = false;

  Vocab() = default;
  Vocab(Vocab&&) = default;
  Vocab& operator=(Vocab&&) = default;
  Vocab(const Vocab&) = delete;  // the keys of `ids` are views of `tokens`
  Vocab& operator=(const Vocab&) = delete;

  /// Throws Error{kBadModel} naming a key that is missing, of the wrong type or inconsistent.
  static Vocab from_gguf(const GgufFile& file, const VocabDefaults& defaults);

  /// Fills `ids`. Throws Error{kBadModel} with a message that begins with `origin` if two tokens
  /// have the same text.
  void index(const std::string& origin);
  /// Fills `ends`, `visible`, `fill_in` and special.eot from special.eos, `named` and the texts
  /// that models use; makes tokens with the text of a control token control tokens. Needs `types`
  /// and `ids`.
  void find_ends(NamedTokens named);

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  /// The id of a text; -1 if it is not a token.
  int32_t find(std::string_view text) const {
    const auto at = ids.find(text);
    return at == ids.end() ? -1 : at->second;
  }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
  /// Throws Error{kUsage} if `id` is not in the vocabulary.
  void check(int32_t id) const;
  /// Control and unknown tokens: text becomes one only on request, and they have no text.
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
