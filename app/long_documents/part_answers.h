// SPDX-License-Identifier: MIT
// The answers of the parts of a document: what a model is asked about each, and what its answer
// says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "long_documents/cut.h"
#include "snapkv/chat.h"

namespace snapkv::long_documents {

/// Most tokens of a part's answer.
inline constexpr int64_t kPartAnswerTokens = 128;

/// What is asked after part `i` of `n`. `in_chat`: of a model that answers messages; others get the
/// question alone, which continues the text.
std::string part_question(std::string_view question, size_t i, size_t n, bool in_chat);

/// Whether an answer says that its part has none: it is empty, or says NONE as it was asked to.
bool is_none(std::string_view answer);

/// A passage of the document that a part's answer was taken from.
struct PartSource {
  size_t begin = 0, end = 0;  ///< bytes of the document
  float attention = 0;
};

struct PartAnswer {
  size_t part = 0;   ///< its index in the plan
  std::string text;  ///< empty: the part has no answer
  std::vector<PartSource> sources;
  double seconds = 0;
};

}  // namespace snapkv::long_documents
