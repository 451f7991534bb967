// SPDX-License-Identifier: MIT
// Tokenizer: converts text to token ids and back, from a model file or a vocabulary alone.
//
//   const auto tokenizer = snapkv::Tokenizer::load("tokenizer.json");
//   for (const int32_t id : tokenizer->encode("The quick fox", true, false)) { ... }
//
// Ids from a GGUF file are llama.cpp's, those from a tokenizer.json are those of Hugging Face's
// tokenizers. A Tokenizer is immutable and threads may share it. Pieces may end in the middle of a
// UTF-8 character: text_stream.h turns them into text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/chat.h"
#include "snapkv/error.h"

namespace snapkv {

class GgufFile;

/// Ids of tokens with a special meaning; -1 if the model has none.
struct SpecialTokens {
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t eot = -1;
  int32_t unk = -1;
  int32_t pad = -1;
  bool add_bos = false;  ///< encode() with add_special begins with bos
  bool add_eos = false;  ///< ... and ends with eos
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// From a GGUF file, which need not have tensors, a Hugging Face tokenizer.json, or a folder that
  /// has one. A tokenizer_config.json beside a tokenizer.json tells which tokens are BOS, EOS and
  /// so on. Throws kRuntime (cannot be read), kBadModel (names file, field, expected and actual
  /// value).
  static std::shared_ptr<const Tokenizer> load(const std::string& path);
  /// Private to the engine: from an open GGUF file.
  static std::unique_ptr<Tokenizer> from_gguf(const GgufFile& file);

  /// Ids of `text`. `add_special`: adds tokens before and after it if the model asks for them.
  /// `parse_special`: control tokens spelled out in the text become their ids; otherwise they are
  /// plain text. User-defined tokens are always found. SentencePiece-like vocabularies with byte
  /// tokens keep bytes that are not UTF-8; to all others they are U+FFFD. Text for which the
  /// vocabulary has neither tokens nor an unknown token is left out, with a warning in the log.
  /// Throws kRuntime if a pattern of the vocabulary takes too long for this text, or if the text
  /// exceeds 1 GiB.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special,
                                      bool parse_special) const = 0;

  /// Ids of a rendered chat: those of encode() with parse_special, except that control tokens with
  /// bytes in RenderedChat::input stay text. `add_bos`: whether this is the beginning of the
  /// conversation, which begins with BOS, once, if the model asks for it. If false, the text
  /// continues a conversation, and gets neither BOS nor the space that some vocabularies put before
  /// a text. EOS is never added. Throws as encode() does.
  virtual std::vector<int32_t> encode_chat(const RenderedChat& chat, bool add_bos) const = 0;

  /// The bytes that a token adds to the output (may be part of a UTF-8 character); empty for
  /// control tokens unless `special`. Throws kUsage if the id is not a token.
  virtual std::string piece(int32_t id, bool special = false) const = 0;

  /// Text of a sequence: the pieces joined, without the space that encode() put before the first
  /// word.
  virtual std::string decode(std::span<const int32_t> ids, bool special = false) const = 0;

  virtual int64_t n_vocab() const = 0;
  /// A token as the vocabulary spells it: "\u0120the", "<0x0A>". Throws kUsage as piece() does.
  virtual const std::string& token_text(int32_t id) const = 0;
  /// The id of a token spelled as in the vocabulary; -1 if there is none.
  virtual int32_t find(std::string_view token_text) const = 0;
  /// True for control tokens and unknown ones: text becomes one only with parse_special.
  virtual bool is_control(int32_t id) const = 0;
  virtual const SpecialTokens& special() const = 0;
  /// True for EOS, end-of-turn and similar tokens, at which generation ends.
  virtual bool is_end_of_generation(int32_t id) const = 0;
  /// Kind of tokenizer, for people: "BPE, llama-bpe".
  virtual std::string description() const = 0;
};

}  // namespace snapkv
