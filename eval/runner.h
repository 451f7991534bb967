// SPDX-License-Identifier: MIT
// Asks one prompt of many cache configurations: the prompt is computed once, compressed as each
// configuration says, and continued greedily by all of them together. Tasks make the prompts;
// eval_command.cpp calls run_items.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/record_file.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

/// The options of a session as a record holds them; equal options give equal objects.
Json configuration_json(const SessionOptions& options);
/// "snapkv 128, window 16, kernel 15"; "full"
std::string configuration_label(const SessionOptions& options);

struct Prompt {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<std::string> references;  ///< the right answers
  Json details = Json::object();        ///< what the generator drew
};

/// One prompt of a task. `id` names its content: the same id is the same prompt.
struct Item {
  std::string id;
  std::string column;  ///< of the summary: "4000 tokens"
  std::function<Prompt()> make;
  std::function<double(const Prompt& prompt, const std::string& answer)> score;  ///< in [0, 1]
};

struct RunOptions {
  std::shared_ptr<const Model> model;
  std::vector<SessionOptions> configurations;
  int64_t n_predict = 30;  ///< most tokens of an answer; it also ends with its first line
  uint64_t seed = 0;       ///< written into the records
  ProgressFn prefill_progress = {};
  std::function<void(int64_t done, int64_t total)> progress = {};  ///< prompts
  std::function<bool()> cancelled = [] { return false; };
};

/// What makes a record's key: the item, the model, the version and the configuration.
std::string record_key(const RunOptions& run, const std::string& id,
                       const SessionOptions& configuration);

struct Answer {
  std::string text;
  SessionStats after_prefill;
};
/// Reads `tokens` once for all configurations. Throws kCancelled, and what sessions throw.
std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const std::vector<int32_t>& tokens);

/// Runs what the file lacks and appends a record for each item and configuration.
void run_items(const RunOptions& run, const std::vector<Item>& items, RecordFile& file);

/// Markdown: a row per configuration, a column per Item::column, each `mean% [low, high] of n` with
/// its 95% Wilson interval.
std::string summary_table(const RunOptions& run, const std::vector<Item>& items,
                          const RecordFile& file);

}  // namespace snapkv::eval
