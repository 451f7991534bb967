// SPDX-License-Identifier: MIT
// --long: prompts whose document is longer than the context (long_documents/plan.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_settings.h"
#include "cli/generate/cite.h"
#include "long_documents/condensed.h"
#include "long_documents/plan.h"
#include "snapkv/engine.h"

namespace snapkv::cli {

/// `mode` is the default.
CLI::Option* add_long_option(CLI::App& app, long_documents::LongMode& mode);

/// What stands in the prompt instead of the document, and how it was chosen.
struct LongPrompt {
  long_documents::LongPlan plan;
  std::vector<long_documents::PartAnswer> answers;  ///< of the parts, if it was read in parts
  long_documents::Condensed condensed;
};

/// What reading a long document needs to know of a run.
struct LongRun {
  std::shared_ptr<const Model> model;
  SessionOptions session;
  int64_t n_ctx = 0;          ///< in force
  int64_t answer_tokens = 0;  ///< of the final answer; negative: no limit is given
  bool in_chat = false;       ///< prompts are messages
  /// The tokens of a prompt, through the template if there is one.
  std::function<std::vector<int32_t>(const std::string& prompt)> tokens_of;
};

/// Shortens the document of a prompt so that it fits, as `mode`, which is not `refuse`, says; for
/// `parts` the model reads and answers each part. Says on stderr what is read and how long it will
/// take. Throws kContextExceeded where there is no question to choose by, or no room, kCancelled
/// after Ctrl-C.
LongPrompt read_long(const LongRun& run, const PromptText& prompt, long_documents::LongMode mode,
                     ProgressDisplay& progress);

/// The sources of the answer that `session` has written: passages of the prompt's document.
std::vector<CitedPassage> cited_passages(Session& session, std::span<const int32_t> tokens,
                                         const LongPrompt& found, const PromptText& prompt);

}  // namespace snapkv::cli
