// SPDX-License-Identifier: MIT
// Which parts of the user's texts fidelity.h compares caches on: passages of a prompt and the text
// that truly follows it. Nothing is drawn: the same texts and options give the same passages.
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

/// A text as the model reads it, without BOS.
struct TokenizedText {
  std::string path;
  std::string fingerprint;
  std::vector<int32_t> tokens;
};

/// Prompt: BOS and tokens from `first` on, `length` in all. After it come n_continue + 1 tokens:
/// the first is predicted before anything is compressed, so it is fed and not compared.
struct Passage {
  size_t text = 0;     ///< of FidelityPlan::texts
  int64_t length = 0;  ///< of the prompt
  int64_t first = 0;   ///< of the text's tokens
};

struct FidelityPlan {
  int64_t n_continue = 0;
  std::vector<int32_t> begin;  ///< BOS, where the model has one
  std::vector<TokenizedText> texts;
  std::vector<Passage> passages;
  /// What is not as asked, for people: texts too short for a length, the same text twice.
  std::vector<std::string> remarks;

  std::vector<int32_t> prompt(const Passage& passage) const;
  std::vector<int32_t> continuation(const Passage& passage) const;  ///< [n_continue + 1]
  /// Names the passage's content; equal texts in other files are the same.
  std::string id(const Passage& passage) const;
  int64_t end(const Passage& passage) const;  ///< the token of the text after all of it
  int64_t n_needed(int64_t length) const;     ///< tokens of a text for a prompt of `length`
  int64_t n_tokens() const;                   ///< of all texts
  int64_t n_used() const;                     ///< of them, in at least one passage
};

/// Throws kUsage when no text is long enough for any length (texts must not be empty),
/// kContextExceeded when a prompt and its continuation exceed the model's context.
FidelityPlan plan_fidelity(const Model& model, const std::vector<TextFile>& texts,
                           const FidelityOptions& options);

}  // namespace snapkv::eval
