// SPDX-License-Identifier: MIT
// What stands in a prompt instead of a document that is too long for it: excerpts of the document,
// each under its page, and what its parts answered. An answer's sources in it are found in the
// document again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "long_documents/part_answers.h"
#include "long_documents/plan.h"

namespace snapkv::long_documents {

/// Bytes of Condensed::text that are a passage of the document, without white space around them.
struct Excerpt {
  size_t begin = 0;           ///< first byte in Condensed::text
  size_t document_begin = 0;  ///< the same byte in the document
  size_t n_bytes = 0;
  int first_page = 0, last_page = 0;
};

/// Bytes of Condensed::text that are the answer of a part.
struct QuotedAnswer {
  size_t begin = 0, n_bytes = 0;
  size_t answer = 0;  ///< index in the answers that it was made of
};

struct Condensed {
  std::string text;
  std::vector<Excerpt> excerpts;     ///< in the document's order
  std::vector<QuotedAnswer> quoted;  ///< in the parts' order
};

/// For Way::first and Way::passages: what is read at once.
Condensed condense(const LongDocument& document, const LongPlan& plan);

/// For Way::parts, once all parts are answered: the answers, and the passages that they were taken
/// from, as many of the most attended ones as fit into `most_tokens`. `in_chat` as in
/// part_question(): without it there are only passages. Throws kContextExceeded where the answers
/// alone do not fit.
Condensed condense(const LongDocument& document, const LongPlan& plan,
                   const std::vector<PartAnswer>& answers, bool in_chat, int64_t most_tokens,
                   const CountTokens& count);

/// The same, with fewer passages as long as `excess` says by how many tokens the reading of it is
/// too long.
Condensed condense_to_fit(const LongDocument& document, const LongPlan& plan,
                          const std::vector<PartAnswer>& answers, bool in_chat, int64_t most_tokens,
                          const CountTokens& count,
                          const std::function<int64_t(const Condensed&)>& excess);

/// {"way", "document_bytes", "document_tokens", "read_tokens", "words", "parts", "passages"}: what
/// was read, in bytes and pages of the document, and what the parts answered. Of several documents
/// each range names its own ("document"), and a part has a range for each ("documents").
nlohmann::ordered_json long_json(const LongDocument& document, const LongPlan& plan,
                                 const std::vector<PartAnswer>& answers,
                                 const Condensed& condensed);

}  // namespace snapkv::long_documents
