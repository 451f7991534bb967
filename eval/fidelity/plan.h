// SPDX-License-Identifier: MIT
// The passages of the user's texts on which fidelity.h compares caches: a prompt and the text that
// really follows it. Nothing is random: the same texts and options give the same passages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/common/text_files.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

struct FidelityOptions {
  std::vector<int64_t> lengths = {1000, 2000, 4000};  ///< tokens of a prompt, BOS included
  int64_t n_continue = 128;                           ///< positions compared
  int n_samples = 1;  ///< passages of each text and length, spread evenly over the text
};

/// A text as the model's tokens, without BOS.
struct TokenizedText {
  std::string path;
  std::string fingerprint;
  std::vector<int32_t> tokens;
};

/// The prompt is BOS and the tokens from `first` on, `length` in all. n_continue + 1 tokens follow;
/// the first of them is predicted before anything is compressed, so it is fed but not compared.
struct Passage {
  size_t text = 0;     ///< index into FidelityPlan::texts
  int64_t length = 0;  ///< tokens of the prompt
  int64_t first = 0;   ///< index of its first token in the text
};

struct FidelityPlan {
  int64_t n_continue = 0;
  std::vector<int32_t> begin;  ///< BOS, if the model has one
  std::vector<TokenizedText> texts;
  std::vector<Passage> passages;
  /// Messages for the user about the plan: texts too short for a length, the same text twice.
  std::vector<std::string> remarks;

  std::vector<int32_t> prompt(const Passage& passage) const;
  std::vector<int32_t> continuation(const Passage& passage) const;  ///< [n_continue + 1]
  /// Identifies the passage by its content: equal texts in different files have the same id.
  std::string id(const Passage& passage) const;
  int64_t end(const Passage& passage) const;  ///< index of the text's first token after the passage
  int64_t n_needed(int64_t length) const;     ///< tokens of a text for a prompt of `length`
  int64_t n_tokens() const;                   ///< tokens of all texts
  int64_t n_used() const;                     ///< tokens in at least one passage
};

/// Throws kUsage if no text is long enough for any length (texts must not be empty),
/// kContextExceeded if a prompt and its continuation exceed the model's context.
FidelityPlan plan_fidelity(const Model& model, const std::vector<TextFile>& texts,
                           const FidelityOptions& options);

}  // namespace snapkv::eval
