// SPDX-License-Identifier: MIT
// Needle in a haystack: prompts for every length x depth x seed that hide facts in filler text and
// ask for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"

namespace snapkv::eval {

/// single: one fact. multi_key: facts about several names, one of them asked for. multi_value:
/// several numbers of one name, all asked for. multi_query: several names, all asked for. text: a
/// sentence to repeat, scored by ROUGE-1.
enum class NeedleKind { single, multi_key, multi_value, multi_query, text };
/// "multi-key"
const char* name(NeedleKind kind);
/// Throws kUsage for an unknown name.
NeedleKind needle_kind(const std::string& name);

struct NeedleOptions {
  NeedleKind kind = NeedleKind::single;
  std::vector<int64_t> lengths = {1000, 2000, 4000};  ///< tokens of the whole prompt, at most
  int n_depths = 10;  ///< spread evenly from 0 to 100%; if 1, the middle
  int n_samples = 1;  ///< prompts for each length and depth, each with its own seed
  int n_facts = 4;    ///< for the multi kinds
  std::string name;   ///< the city to ask about, one of needle_names(); empty: drawn
  uint64_t seed = 1;
  std::string haystack;    ///< text of the user's files; empty: generated sentences
  int64_t n_predict = 30;  ///< most tokens of an answer, which also ends after its first line
  PromptFormat format;     ///< lengths include what it adds
};

/// The cities that facts are about. models/needle.gguf was trained with all of these names.
const std::vector<std::string>& needle_names();

struct NeedleText {
  PromptText prompt;  ///< filler with facts, the question, the beginning of the answer
  std::vector<std::string> references;
  Json details;  ///< for the record
};
/// The text that a format puts between a question and the beginning of the answer: a newline, or
/// nothing in a chat.
const char* after_question(const PromptFormat& format);

/// Makes the text for one cell of the grid in options.format; `sample` determines names, numbers
/// and filler. Throws kUsage if the length has no room for facts and question.
NeedleText make_needle_text(const Model& model, const NeedleOptions& options, int64_t length,
                            double depth, int sample);
/// The same as a prompt.
Prompt make_needle(const Model& model, const NeedleOptions& options, int64_t length, double depth,
                   int sample);
std::vector<Item> needle_items(std::shared_ptr<const Model> model, const NeedleOptions& options);
/// The score of an answer, by the rule for its kind.
double needle_score(NeedleKind kind, const Prompt& prompt, const std::string& answer);

}  // namespace snapkv::eval
