// SPDX-License-Identifier: MIT
// RULER's synthetic tasks (arXiv 2404.06654), generated to a given length in tokens of the model's
// own tokenizer. Templates, counts and lengths are those of github.com/NVIDIA/RULER at c3f5e3b,
// scripts/data/synthetic; words and filler are our own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/common/prompt_format.h"
#include "eval/common/runner.h"

namespace snapkv::eval {

/// niah_single_1 to 3, niah_multikey_1 to 3, niah_multivalue, niah_multiquery, vt, cwe, fwe.
const std::vector<std::string>& ruler_task_names();

struct RulerOptions {
  std::vector<std::string> tasks = ruler_task_names();
  std::vector<int64_t> lengths = {4096};  ///< tokens of prompt and answer, at most
  int n_samples = 10;                     ///< prompts for each task and length
  uint64_t seed = 1;
  std::string haystack = {};  ///< text for the essay tasks; empty: generated sentences
  PromptFormat format = {};   ///< lengths include what it adds
};

/// Makes one prompt; `sample` determines everything random. It has as much filler as fits: prompt
/// and answer together have at most `length` tokens, and nothing is cut. Throws kUsage for an
/// unknown task, and if the length has no room for the least that the task needs.
Prompt make_ruler(const Model& model, const RulerOptions& options, const std::string& task,
                  int64_t length, int sample);
/// One column per task. Throws kUsage as make_ruler does, for the first sample of each task and
/// length.
std::vector<Item> ruler_items(std::shared_ptr<const Model> model, const RulerOptions& options);

}  // namespace snapkv::eval
