// SPDX-License-Identifier: MIT
// A text with several facts and a question about each, for tasks that ask more than once.
#pragma once

#include <string>
#include <vector>

#include "eval/needle/needle.h"

namespace snapkv::eval {

struct NeedleDocument {
  std::string text;
  struct Question {
    std::string question;  ///< "\nQuestion: What is the secret number of Rome?\n"; in a chat
                           ///< without the final newline
    std::string lead;      ///< "Answer: The secret number of Rome is", which the model continues
    std::string answer;    ///< "48213"
  };
  std::vector<Question> questions;  ///< one for each fact
};

/// Makes a document of options.n_facts facts that leaves room for any one of its questions in
/// `length` tokens. The first fact is at `depth` (0 to 1), the others at random depths; `sample`
/// determines names, numbers and filler. Throws kUsage if the length has no room.
NeedleDocument make_needle_document(const Model& model, NeedleOptions options, int64_t length,
                                    double depth, int sample);

}  // namespace snapkv::eval
