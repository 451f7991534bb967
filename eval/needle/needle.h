// SPDX-License-Identifier: MIT
// Needle in a haystack: prompts of every length x depth x seed that hide facts in filler text and
// ask for them. Used by `snapkv eval
// needle`, and by the demo and explain for a prompt of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"

namespace snapkv::eval {

/// single: one fact. multi_key: facts of several names, one asked for. multi_value: several numbers
/// of one name, all asked for. multi_query: several names, all asked for. text: a sentence to
/// repeat, scored by ROUGE-1.
enum class NeedleKind { single, multi_key, multi_value, multi_query, text };
/// "multi-key"
const char* name(NeedleKind kind);
/// Throws kUsage for an unknown name.
NeedleKind needle_kind(const std::string& name);

struct NeedleOptions {
  NeedleKind kind = NeedleKind::single;
  std::vector<int64_t> lengths = {1000, 2000, 4000};  ///< tokens of the whole prompt, at most
  int n_depths = 10;  ///< spread evenly from 0 to 100%; one: the middle
  int n_samples = 1;  ///< prompts of each length and depth, each with a seed of its own
  int n_facts = 4;    ///< of the multi kinds
  std::string name;   ///< the city asked about, one of needle_names(); empty: drawn
  uint64_t seed = 1;
  std::string haystack;    ///< text of the user's files; empty: generated sentences
  int64_t n_predict = 30;  ///< tokens of an answer, at most; it also ends with its first line
  PromptFormat format;     ///< lengths count what it adds
};

/// The cities that facts are about. Each is a name that models/needle.gguf was trained with.
const std::vector<std::string>& needle_names();

struct NeedleText {
  PromptText prompt;  ///< filler with facts, question, beginning of the answer
  std::vector<std::string> references;
  Json details;  ///< for the record
};
/// What a format puts between a question and the answer's beginning: without a chat a newline.
const char* after_question(const PromptFormat& format);

/// The text of one cell of the grid, for options.format; `sample` chooses names, numbers and
/// filler. Throws kUsage when the length has no room for facts and question.
NeedleText make_needle_text(const Model& model, const NeedleOptions& options, int64_t length,
                            double depth, int sample);
/// The same as a prompt.
Prompt make_needle(const Model& model, const NeedleOptions& options, int64_t length, double depth,
                   int sample);
std::vector<Item> needle_items(std::shared_ptr<const Model> model, const NeedleOptions& options);
/// What the score of an answer is, by kind.
double needle_score(NeedleKind kind, const Prompt& prompt, const std::string& answer);

}  // namespace snapkv::eval
