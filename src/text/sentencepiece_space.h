// SPDX-License-Identifier: MIT
// SentencePiece vocabularies spell a space as U+2581.
#pragma once

#include <string>
#include <string_view>

namespace snapkv {

inline constexpr std::string_view kSentencePieceSpace = "\xe2\x96\x81";  // U+2581

/// `text` with every `from`, which must not be empty, replaced by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

inline std::string with_sentencepiece_spaces(std::string_view text) {
  return replace_all(text, " ", kSentencePieceSpace);
}
inline std::string without_sentencepiece_spaces(std::string_view text) {
  return replace_all(text, kSentencePieceSpace, " ");
}

}  // namespace snapkv
