// SPDX-License-Identifier: MIT
// The report of a `generate` run: the summary on stderr and the JSON object on stdout.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/generate/cite.h"
#include "cli/generate/generation.h"
#include "cli/generate/long_prompt.h"
#include "snapkv/engine.h"
#include "snapkv/grammar.h"

namespace snapkv::cli {

/// Everything about one run.
struct RunReport {
  ModelInfo model;
  std::string backend;
  SessionOptions session;  ///< once there is a session, that session's, with its budget resolved
  std::vector<std::string> params_of_model;  ///< policy parameters that the model's file sets
  int64_t n_ctx = 0;                         ///< in force
  SamplerConfig sampler;
  std::optional<Grammar> grammar;
  GeneratorOptions limits;
  int64_t n_prompt = 0;          ///< tokens
  int64_t n_loaded = 0;          ///< tokens seen by the saved cache that was loaded
  int64_t n_stored = 0;          ///< of the prompt's tokens, those whose rows were stored already
  bool as_chat = false;          ///< the prompt was read as a user's message
  bool is_harmony = false;       ///< whose answer has channels (chat/harmony.h)
  bool misses_template = false;  ///< the model has a chat template, which the prompt is not made by
  bool has_control = false;      ///< so it was left as it is: it holds control tokens already
  bool continues_text = false;   ///< a base model's answer, without --n-predict
  Generation generation;
  std::optional<std::vector<CitedPassage>> sources;  ///< with --cite
  std::optional<LongPrompt> shortened;    ///< of a document that was longer than the context
  long_documents::LongDocument document;  ///< that document
  double load_seconds = 0;
  double cancelled_after_seconds = 0;         ///< time in prefill, if it was cancelled
  std::optional<double> first_token_seconds;  ///< from the start of prefill
  std::optional<SessionStats> after_prefill;  ///< empty when prefill was cancelled
  SessionStats at_end;
};

/// The process's highest memory use so far, from getrusage.
size_t peak_rss();

/// The summary for people. `parts`: includes the shares of prefill's time.
std::string summary(const RunReport& report, bool parts, bool colour);
/// One JSON object that ends in a newline; valid UTF-8 whatever the model wrote.
std::string to_json(const RunReport& report);

}  // namespace snapkv::cli
