// SPDX-License-Identifier: MIT
// Asks one prompt of many cache configurations: the prompt is computed once, compressed as each
// configuration says, and continued greedily by all of them together. Tasks make the prompts;
// eval/command.cpp calls run_items.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "eval/common/origin.h"
#include "eval/common/record_file.h"
#include "snapkv/engine.h"

namespace snapkv::eval {

class PromptReader;  // prompt_reader.h

/// A policy with every parameter that it has, by the names that records call them.
Json policy_json(const PolicyConfig& config);
/// The options of a session as a record holds them; equal options give equal objects.
Json configuration_json(const SessionOptions& options);
/// "snapkv 128, window 16, kernel 15"; "full"
std::string configuration_label(const SessionOptions& options);

/// A further question of a conversation, asked when the answer before it is complete.
struct Turn {
  std::string text;
  std::vector<int32_t> tokens;
  std::string reference;  ///< the right answer
  /// Of a chat: an answer that its limit of tokens ended is first read to its last token, which was
  /// chosen only. Else that one is left out.
  bool completes_answer = false;
};

struct Prompt {
  std::string text;
  std::vector<int32_t> tokens;
  /// Of `tokens`: those before the question. Needed by question-agnostic runs, else may be 0.
  int64_t n_context = 0;
  /// Tokens [n_context, question_end) are the question. What follows is the end of a chat template
  /// and the beginning of the answer.
  int64_t question_end = 0;
  std::vector<std::string> references;  ///< the right answers
  Json details = Json::object();        ///< what the generator drew
  std::vector<Turn> turns;              ///< what is asked after the first answer
};

/// Tokenizes `text`, whose first `context_bytes` bytes are the context. The tokens are those of the
/// whole text: one that holds bytes of both sides counts as the question's.
Prompt split_prompt(const Model& model, std::string text, size_t context_bytes);

/// When an answer ends, beside the model's own end.
struct AnswerLimit {
  int64_t n_predict = 30;    ///< tokens
  bool ends_at_line = true;  ///< with its first line that isn't empty
};

/// One prompt of a task. `id` names its content: the same id is the same prompt.
struct Item {
  std::string id;
  std::string column;  ///< of the summary: "4000 tokens"
  /// Items of one group, one after the other, begin with the same text: what they share is read
  /// once. Empty: an item by itself. Answers do not depend on it.
  std::string group = {};
  std::function<Prompt()> make;
  /// In [0, 1]. With further turns it is called for each with a prompt whose only reference is that
  /// turn's, and the record's score is the mean of all.
  std::function<double(const Prompt& prompt, const std::string& answer)> score;
  AnswerLimit limit = {};
};

/// The first item of each id, in their order: a prompt that counts twice makes intervals too
/// narrow.
std::vector<Item> each_once(std::vector<Item> items);

struct RunOptions {
  std::shared_ptr<const Model> model;
  std::vector<SessionOptions> configurations;
  uint64_t seed = 0;  ///< written into the records
  std::string date = utc_now();  ///< when the run began, for the records
  /// The context is compressed before the question is seen; the question's rows are all kept.
  bool question_agnostic = false;
  /// The context is read once and stored, every row in stored_kv_type() (snapkv compress
  /// --keep-full); each configuration then selects with the question.
  bool keeps_full = false;
  ProgressFn prefill_progress = {};
  std::function<void(int64_t done, int64_t total)> progress = {};  ///< prompts
  std::function<bool()> cancelled = [] { return false; };
};

/// Names what predicts: file, contents and precision.
std::string model_key(const Model& model);
/// What makes a record's key: the item, the model, the version, how an answer ends, the
/// configuration, and whether it saw the question.
std::string record_key(const RunOptions& run, const Item& item,
                       const SessionOptions& configuration);

/// The fields that every task's records begin with: key, prompt, model, configuration, and where
/// the result comes from (origin.h).
Json begin_record(const RunOptions& run, std::string key, std::string id,
                  const SessionOptions& configuration);

struct Answer {
  std::string text;
  SessionStats after_prefill;  ///< of the whole prompt, the question included
  struct Later {
    std::string text;
    double prefill_seconds = 0;  ///< from the question's first token to its last one's logits
  };
  std::vector<Later> later;  ///< of Prompt::turns
  SessionStats at_end;
};
/// Reads the prompt once for all configurations (question-agnostic: its context; then each reads
/// the question), and the further turns for each. Throws kCancelled, and what sessions throw.
std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const Prompt& prompt, const AnswerLimit& limit);
/// The same by a reader that may know the prompt's beginning. `keeps`: a prompt that begins like
/// this one follows.
std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const Prompt& prompt, const AnswerLimit& limit,
                                  PromptReader& reader, bool keeps);

/// Runs what the file lacks and appends a record for each item and configuration.
void run_items(const RunOptions& run, const std::vector<Item>& items, RecordFile& file);

/// Markdown: a row per configuration; what it saw the question with, the mean size of its cache,
/// and a column per Item::column, each `mean% [low, high] of n` with its 95% Wilson interval.
std::string summary_table(const RunOptions& run, const std::vector<Item>& items,
                          const RecordFile& file);

}  // namespace snapkv::eval
