// SPDX-License-Identifier: MIT
// Runs one prompt with many cache configurations: the prompt is computed once, compressed as each
// configuration says, and continued greedily by all of them together. The tasks make the prompts.
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

/// A policy with all its parameters, under the names that records use.
Json policy_json(const PolicyConfig& config);
/// The options of a session as a record holds them; equal options give equal objects.
Json configuration_json(const SessionOptions& options);
/// "snapkv 128, window 16, kernel 15"; "full"
std::string configuration_label(const SessionOptions& options);

/// A further question of a conversation, asked after the previous answer is complete.
struct Turn {
  std::string text;
  std::vector<int32_t> tokens;
  std::string reference;  ///< the right answer
  /// For a chat: if the token limit ended the previous answer, its last token, which was chosen but
  /// not yet read, is read before this turn. Otherwise that token is left out.
  bool completes_answer = false;
};

struct Prompt {
  std::string text;
  std::vector<int32_t> tokens;
  /// The number of `tokens` before the question. Question-agnostic runs need it; else it may be 0.
  int64_t n_context = 0;
  /// Tokens [n_context, question_end) are the question. After it come the end of a chat template
  /// and the beginning of the answer.
  int64_t question_end = 0;
  std::vector<std::string> references;  ///< the right answers
  Json details = Json::object();        ///< what the generator drew, for the record
  std::vector<Turn> turns;              ///< questions after the first answer
  /// Only the answer to the last turn counts, and `references` are its own. The full cache answers
  /// all questions before it, and every configuration reads these answers as its own.
  bool has_full_history = false;
};

/// Tokenizes `text`, whose first `context_bytes` bytes are the context. The tokens are those of the
/// whole text; a token with bytes of both parts belongs to the question.
Prompt split_prompt(const Model& model, std::string text, size_t context_bytes);

/// The prompt's text from the question on, including control tokens, for records that name the
/// context otherwise.
std::string asked_text(const Model& model, const Prompt& prompt);

/// Where an answer ends, apart from the model's own end.
struct AnswerLimit {
  int64_t n_predict = 30;    ///< tokens
  bool ends_at_line = true;  ///< after the first line that is not empty
};

/// One prompt of a task. `id` identifies its content: equal ids mean equal prompts.
struct Item {
  std::string id;
  std::string column;  ///< its column in the summary: "4000 tokens"
  /// Consecutive items of one group begin with the same text, and the part they share is read once.
  /// Empty: the item is on its own. Answers do not depend on this.
  std::string group = {};
  std::function<Prompt()> make;
  /// The score of an answer, in [0, 1]. If there are further turns, it is called for each with a
  /// prompt whose only reference is that turn's, and the record's score is the mean of all.
  std::function<double(const Prompt& prompt, const std::string& answer)> score;
  /// In place of `score`, where an answer is measured beside that of policy full, which the run
  /// must have: the fields of the record that say what it is worth, with a `score` in [0, 1].
  std::function<Json(const std::string& answer, const std::string& full)> beside_full = {};
  AnswerLimit limit = {};
};

/// The first item of each id, in order: a prompt that counts twice would make intervals too narrow.
std::vector<Item> each_once(std::vector<Item> items);

struct RunOptions {
  std::shared_ptr<const Model> model;
  std::vector<SessionOptions> configurations;
  uint64_t seed = 0;             ///< written into the records
  std::string date = utc_now();  ///< the run's start, for the records
  /// The context is compressed before the question is seen; all rows of the question are kept.
  bool question_agnostic = false;
  /// The context is read once and stored, every row in stored_kv_type() (as by `snapkv compress
  /// --keep-full`); then each configuration selects rows with the question.
  bool keeps_full = false;
  ProgressFn prefill_progress = {};
  std::function<void(int64_t done, int64_t total)> progress = {};  ///< counts prompts
  std::function<bool()> cancelled = [] { return false; };
  /// If set, run_items() asks it before each prompt but the first: true ends the run there.
  std::function<bool()> enough = {};
};

/// The configuration with policy full, which the run must have.
const SessionOptions& full_configuration(const RunOptions& run);

/// Identifies the model and how it computes: file, contents and precision.
std::string model_key(const Model& model);
/// The parts of a record's key: the item, the model, the version, how an answer ends, the
/// configuration, and whether it saw the question.
std::string record_key(const RunOptions& run, const Item& item,
                       const SessionOptions& configuration);

/// The fields with which the records of every task begin: key, prompt, model, configuration, and
/// where the result comes from (origin.h).
Json begin_record(const RunOptions& run, std::string key, std::string id,
                  const SessionOptions& configuration);

struct Answer {
  std::string text;
  SessionStats after_prefill;  ///< after the whole prompt, including the question
  struct Later {
    std::string text;
    double prefill_seconds = 0;  ///< from reading the question's first token to its last logits
  };
  std::vector<Later> later;  ///< for Prompt::turns
  /// With Prompt::has_full_history: the full cache's answers to the questions before the last one.
  /// `text` is then the answer to the last one, `after_prefill` the state when that one was read.
  std::vector<std::string> history;
  int64_t n_read = 0;  ///< the tokens that had then been read, answers included
  SessionStats at_end;
};
/// Reads the prompt once for all configurations (question-agnostic: reads its context once, and
/// then the question for each), then the further turns for each. Throws kCancelled and what
/// sessions throw.
std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const Prompt& prompt, const AnswerLimit& limit);
/// The same with a reader that may already know the prompt's beginning. `keeps`: a prompt with the
/// same beginning follows.
std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const Prompt& prompt, const AnswerLimit& limit,
                                  PromptReader& reader, bool keeps);

/// Runs what the file does not have yet and appends a record for each item and configuration, until
/// RunOptions::enough.
void run_items(const RunOptions& run, const std::vector<Item>& items, RecordFile& file);

/// Markdown with a row per configuration: whether it saw the question, the mean size of its cache,
/// and a column per Item::column, each `mean% [low, high] of n` with its 95% Wilson interval.
std::string summary_table(const RunOptions& run, const std::vector<Item>& items,
                          const RecordFile& file);

}  // namespace snapkv::eval
