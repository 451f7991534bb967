// SPDX-License-Identifier: MIT
// Tokenizer: text to token ids and back, from a model file or a vocabulary alone.
//
//   const auto tokenizer = snapkv::Tokenizer::load("tokenizer.json");
//   for (const int32_t id : tokenizer->encode("The quick fox", true, false)) { ... }
//
// A GGUF file's ids are llama.cpp's, a tokenizer.json's are those of Hugging Face's tokenizers. A
// Tokenizer is immutable and may be shared by threads. What pieces give may end in the middle of a
// UTF-8 character: text_stream.h makes text of them.
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

/// Ids of the tokens with a meaning of their own; -1 where the model has none.
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
  /// has one. A tokenizer_config.json beside a tokenizer.json says which tokens are BOS, EOS and
  /// so on. Throws kRuntime (can't be read), kBadModel (names file, field, expected, actual).
  static std::shared_ptr<const Tokenizer> load(const std::string& path);
  /// The engine's own: from a GGUF file that is open.
  static std::unique_ptr<Tokenizer> from_gguf(const GgufFile& file);

  /// Ids of `text`. `add_special`: tokens before and after it, as the model asks. `parse_special`:
  /// control tokens spelled out in the text become their ids; otherwise they are read as plain
  /// text. User-defined tokens are always found. Bytes that are not UTF-8 are kept by vocabularies
  /// of SentencePiece's kind with byte tokens and U+FFFD to all others. What the vocabulary has
  /// neither tokens nor an unknown token for is left out, and a warning is logged. Throws kRuntime
  /// when a pattern of the vocabulary takes too long for this text, or the text exceeds 1 GiB.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special,
                                      bool parse_special) const = 0;

  /// Ids of what a chat template made: as encode() with parse_special, but control tokens spelled
  /// out in what came from the conversation, or only begun there, stay text. `add_bos`: begin with
  /// BOS if the model asks for it and the text does not begin with it; false for text that
  /// continues a conversation. EOS is never added. Throws as encode().
  virtual std::vector<int32_t> encode_chat(const RenderedChat& chat, bool add_bos) const = 0;

  /// The bytes a token adds to the output (may be part of a UTF-8 character); empty for control
  /// tokens unless `special`. Throws kUsage for an id that is no token's.
  virtual std::string piece(int32_t id, bool special = false) const = 0;

  /// Text of a sequence: pieces joined, the space that encode() put before the first word removed.
  virtual std::string decode(std::span<const int32_t> ids, bool special = false) const = 0;

  virtual int64_t n_vocab() const = 0;
  /// A token as the vocabulary spells it: "\u0120the", "<0x0A>". Throws kUsage as piece().
  virtual const std::string& token_text(int32_t id) const = 0;
  /// The id of a token spelled as in the vocabulary; -1 if there is none.
  virtual int32_t find(std::string_view token_text) const = 0;
  /// True for control tokens and unknown ones: text becomes one only with parse_special.
  virtual bool is_control(int32_t id) const = 0;
  virtual const SpecialTokens& special() const = 0;
  /// True for EOS, end-of-turn and the like: generation ends at it.
  virtual bool is_end_of_generation(int32_t id) const = 0;
  /// What it is, for people: "BPE, llama-bpe".
  virtual std::string description() const = 0;
};

}  // namespace snapkv
