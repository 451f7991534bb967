// SPDX-License-Identifier: MIT
// A text with several facts and a question for each of them, for tasks that ask more than once.
// Used by the overlap and turns tasks.
#pragma once

#include <string>
#include <vector>

#include "eval/needle/needle.h"

namespace snapkv::eval {

struct NeedleDocument {
  std::string text;
  struct Question {
    std::string question;  ///< "\nQuestion: What is the secret number of Rome?\n"; in a chat
                           ///< without the last newline
    std::string lead;      ///< "Answer: The secret number of Rome is", which the model continues
    std::string answer;    ///< "48213"
  };
  std::vector<Question> questions;  ///< one for each fact
};

/// A document of options.n_facts facts that leaves room for any one of its questions in `length`
/// tokens. The first fact stands at `depth` (0 to 1), the others at depths of their own; `sample`
/// chooses names, numbers and filler. Throws kUsage when the length has no room.
NeedleDocument make_needle_document(const Model& model, NeedleOptions options, int64_t length,
                                    double depth, int sample);

}  // namespace snapkv::eval
