// SPDX-License-Identifier: MIT
// Tokenizer: text to token ids and back, made from a GGUF file's `tokenizer.ggml.*` metadata.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

class GgufFile;

/// Ids of the tokens with a meaning of their own; -1 where the model has none.
struct SpecialTokens {
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t eot = -1;
  int32_t unk = -1;
  int32_t pad = -1;
  bool add_bos = false;
  bool add_eos = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Chooses the implementation by `tokenizer.ggml.model`. Throws Error{kBadModel} that names the
  /// key when metadata is missing, of the wrong type or of an unsupported kind.
  static std::unique_ptr<Tokenizer> from_gguf(const GgufFile& file);

  /// Ids of `text`. `add_special`: prepend BOS / append EOS as the metadata asks. `parse_special`:
  /// control and user-defined tokens spelled out in the text become their ids (as llama.cpp's
  /// parse_special); otherwise control tokens are read as plain text.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special,
                                      bool parse_special) const = 0;

  /// The bytes a token adds to the output (may be part of a UTF-8 character); empty for control
  /// tokens unless `special`.
  virtual std::string piece(int32_t id, bool special = false) const = 0;

  /// Text of a sequence: pieces joined, the space that encode() put before the first word removed.
  virtual std::string decode(std::span<const int32_t> ids, bool special = false) const = 0;

  virtual int64_t n_vocab() const = 0;
  virtual const SpecialTokens& special() const = 0;
  /// True for EOS, end-of-turn and the like: generation ends at it.
  virtual bool is_end_of_generation(int32_t id) const = 0;
};

}  // namespace snapkv
