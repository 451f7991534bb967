// SPDX-License-Identifier: MIT
// Reads `tokenizer.model`, the file in which SentencePiece stores a vocabulary: a ModelProto in the
// binary format of Protocol Buffers. Only the fields that decide a text's tokens are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace snapkv::huggingface {

/// Values of trainer_spec.model_type.
enum PieceModel : int64_t { kUnigramPieces = 1, kBpePieces, kWordPieces, kCharPieces };

struct SentencePiece {
  std::string text;  // not empty
  float score = 0;
  int64_t type = 1;  // a TokenKind: both formats have the same numbers
};

/// How texts are normalized before (normalizer_spec) or after (denormalizer_spec) the model.
struct PieceNormalizer {
  std::string name;
  size_t charsmap_bytes = 0;  // replacements of characters
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
};

/// The members have the format's defaults.
struct SentencePieceModel {
  std::string file;
  std::vector<SentencePiece> pieces;
  int64_t model_type = kUnigramPieces;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  int64_t bos_id = 1, eos_id = 2, pad_id = -1;
  PieceNormalizer normalizer;
  PieceNormalizer denormalizer;
};

/// Throws Error{kBadModel} naming `label`, the byte, and what was expected there.
SentencePieceModel parse_sentencepiece(std::span<const std::byte> bytes, const std::string& label);
/// The same for a file; returns nullopt if there is none.
std::optional<SentencePieceModel> read_sentencepiece_if_there(const std::string& path);

}  // namespace snapkv::huggingface
