// SPDX-License-Identifier: MIT
// Prompts and continuations for the overlap task: documents with two facts and a question about
// each, or random ids.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/overlap/overlap.h"

namespace snapkv::eval {

/// A document and two questions about it, as tokens that can be joined in any order.
struct OverlapDocument {
  std::vector<int32_t> document;  ///< begins with the model's BOS, if it has one
  struct Question {
    std::string text;               ///< the question and the beginning of the answer
    std::vector<int32_t> question;  ///< "\nQuestion: ...?\n"
    std::vector<int32_t> lead;      ///< "Answer: ... is"
    std::string reference;          ///< the right number
  };
  Question questions[2];
  std::string text;  ///< the text of `document`
};
/// Makes a document that has at most `length` tokens together with either question.
OverlapDocument make_document(const Model& model, const OverlapOptions& options, int64_t length,
                              int sample);

/// A prompt and the text after it, [prompt, prompt + continuation).
struct OverlapPassage {
  std::vector<int32_t> tokens;
  int64_t n_prompt = 0;
};
/// Makes a passage for the part "windows": `length` tokens and n_gen_windows * window_length more.
/// Calls `cancelled` between tokens.
OverlapPassage make_passage(const RunOptions& run, const OverlapOptions& options, int sample);

/// Appends n tokens to the passage, chosen greedily with the full cache, but never one that ends a
/// line or the answer. Throws kCancelled.
void continue_passage(const RunOptions& run, int64_t n, OverlapPassage& passage);

}  // namespace snapkv::eval
