// SPDX-License-Identifier: MIT
// Prompts and continuations for the overlap task: documents with two facts and a question for each,
// or random ids. Used by overlap.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/overlap/overlap.h"

namespace snapkv::eval {

/// A document and two questions about it, as tokens that can be put together in any order.
struct OverlapDocument {
  std::vector<int32_t> document;  ///< begins with the model's BOS, if it has one
  struct Question {
    std::string text;               ///< with the beginning of the answer
    std::vector<int32_t> question;  ///< "\nQuestion: ...?\n"
    std::vector<int32_t> lead;      ///< "Answer: ... is"
    std::string reference;          ///< the number asked for
  };
  Question questions[2];
  std::string text;  ///< of the document
};
/// At most `length` tokens with either question.
OverlapDocument make_document(const Model& model, const OverlapOptions& options, int64_t length,
                              int sample);

/// A prompt and what follows it, [prompt, prompt + continuation).
struct Passage {
  std::vector<int32_t> tokens;
  int64_t n_prompt = 0;
};
/// Of the part "windows": length tokens and n_gen_windows * window_length more. `cancelled` is
/// asked between tokens.
Passage make_passage(const RunOptions& run, const OverlapOptions& options, int sample);

/// Appends n tokens to the passage, greedily with the full cache; never one that ends a line or the
/// answer. Throws kCancelled.
void continue_passage(const RunOptions& run, int64_t n, Passage& passage);

}  // namespace snapkv::eval
