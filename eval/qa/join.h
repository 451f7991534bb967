// SPDX-License-Identifier: MIT
// Long documents for `snapkv eval qa`: several texts one after the other, each below its title,
// with questions that name the text they are about.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "eval/qa/data.h"

namespace snapkv::eval {

struct JoinOptions {
  int64_t n_tokens = 0;  ///< of a document, at most
  std::function<int64_t(std::string_view)> count_tokens;
};

/// Puts the texts of the questions together to documents of at most, and nearly, n_tokens, and
/// returns the questions about these documents, each once: `In "TITLE": QUESTION`. Texts follow an
/// order that depends on their titles alone, so that kinds are mixed and the same texts give the
/// same documents. The last document is filled up with texts of the first ones, which are not asked
/// about again. Documents of different halves share no text. Throws kUsage naming the place if a
/// text has no title, two texts have the same one, a text has questions of two halves or is longer
/// than n_tokens, and if the texts of a half have fewer than n_tokens together.
///
/// Questions with gaps are joined apart from the others: a document for each text, which has other
/// texts of the same half before the text's rest (QaGap::rest), and ends where the gap begins.
/// Texts in which a name of the document's gaps stands are left out, so that the model can take it
/// from the text before the rest alone. Throws kUsage also if too little is left.
std::vector<QaQuestion> join_texts(const std::vector<QaQuestion>& questions,
                                   const JoinOptions& options);

}  // namespace snapkv::eval
