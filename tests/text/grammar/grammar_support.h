// SPDX-License-Identifier: MIT
// Helpers for the tests of grammars: a vocabulary of all bytes, and whether a grammar allows a
// text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/grammar.h"

namespace snapkv::test {

/// Token i is byte i for i < 256, and token 256 ends the answer.
inline constexpr int32_t kByteVocabularyEnd = 256;
inline std::shared_ptr<const GrammarVocabulary> byte_vocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    pieces.emplace_back();
    return std::make_shared<const GrammarVocabulary>(std::move(pieces),
                                                     std::vector<int32_t>{kByteVocabularyEnd});
  }();
  return vocabulary;
}

enum class Verdict { kNo, kBeginning, kWhole };

/// Tells whether a grammar allows a text as a whole, only as the beginning of another, or not at
/// all.
inline Verdict verdict(const Grammar& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar, byte_vocabulary());
  try {
    matcher.accept_text(text);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    return Verdict::kNo;
  }
  return matcher.is_complete() ? Verdict::kWhole : Verdict::kBeginning;
}

inline bool allows(const Grammar& grammar, std::string_view text) {
  return verdict(grammar, text) == Verdict::kWhole;
}

inline bool bit(const std::vector<uint64_t>& mask, int32_t id) {
  return (mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1) != 0;
}

}  // namespace snapkv::test
