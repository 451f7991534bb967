// SPDX-License-Identifier: MIT
// What a client asked for, as the scheduler takes it, and what comes back while it is computed.
// Made by the handlers of the API (api/), computed by Scheduler.
//
// Sizes are in bytes, times in seconds, positions count tokens from 0.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "snapkv/engine.h"
#include "snapkv/grammar.h"

namespace snapkv::server {

struct Document;  // document.h

/// A prompt as text or as tokens.
struct Prompt {
  /// What a chat template made, or plain text (then `input` covers nothing: control tokens that are
  /// written out in it are control tokens). Empty where the client sent tokens.
  RenderedChat chat;
  /// The whole prompt, beginning-of-text token included.
  std::vector<int32_t> tokens;
};

/// How much of the cache's state an answer reports.
enum class KvReportLevel { none, summary, positions };

struct Request {
  std::string id;  ///< "chatcmpl-...": of the answer, for logs and /slots
  Prompt prompt;
  SessionOptions session;  ///< what is kept of the prompt; all but kv, kv_memory and
                           ///< kv_decode_limit are the scheduler's
  SamplerConfig sampler;
  std::shared_ptr<const Grammar> grammar;  ///< null: none
  int n = 1;                               ///< answers to the one prompt; the i-th has seed + i
  int64_t max_tokens = -1;  ///< of each answer; -1: as many as the context holds; 0: only the
                            ///< prompt is read
  std::vector<std::string> stops;
  /// Makes what takes an answer's text as it comes and says whether the answer ends with it; one
  /// for each answer. Empty: none.
  std::function<std::function<bool(std::string_view text)>()> make_end_finder;
  bool ignore_eos = false;
  /// Whether control tokens that do not end the answer are part of its text, as markers of tool
  /// calls are in some formats.
  bool shows_control_tokens = false;
  int top_logprobs = -1;  ///< alternatives with each token; -1: no logprobs at all
  /// With top_logprobs >= 0: those of the prompt's tokens come too, before the answer.
  bool scores_prompt = false;
  bool reports_progress = false;
  KvReportLevel kv_report = KvReportLevel::summary;
  /// Whether it may continue a kept conversation and be continued itself.
  bool reuses = true;
  /// If not null: a document that the prompt continues: its tokens are what follows.
  std::shared_ptr<const Document> document;
  /// For Engine::make_snapshot(): every row is written, and each question selects from them.
  bool keeps_all = false;
  int zstd_level = 0;  ///< for the same: of its file; 0: none
  /// 0: none. The request ends with an error when it is not done by then.
  double timeout = 0;
  /// What is done otherwise than the client asked for; its answer's header says so.
  std::vector<std::string> warnings;
};

struct TokenProbability {
  int32_t id = 0;
  std::string bytes;     ///< of its piece; may be part of a character
  double logprob = 0.0;  ///< natural logarithm, of the model's own distribution
};

// ---------------------------------------------------------------- what comes back

/// How far the prompt is read; sent a few times a second with Request::reports_progress.
struct PromptProgress {
  int64_t n_total = 0;   ///< tokens of the prompt
  int64_t n_reused = 0;  ///< of them, those that were there already
  double fraction = 0;   ///< of the work that the others take, 0 to 1
  double seconds = 0;    ///< since reading began
};

/// What became of the prompt's cache.
struct KvReport {
  std::string policy;
  int64_t tokens_before = 0;  ///< of the prompt
  int64_t tokens_kept = 0;    ///< rows per layer and KV head, mean, rounded
  size_t bytes_before = 0;    ///< a full cache of the prompt
  size_t bytes_after = 0;     ///< of the rows that were kept
  double compress_seconds = 0;
  int64_t reused_tokens = 0;
  /// [n_layer][n_head_kv]: true positions kept; with KvReportLevel::positions, else empty.
  std::vector<std::vector<std::vector<int32_t>>> positions;
};

/// The prompt is read; sent once, before any text.
struct PromptRead {
  int64_t n_tokens = 0;  ///< of the prompt, all of them
  int64_t n_reused = 0;  ///< of a kept conversation, a prefix or a snapshot
  int64_t n_stored = 0;  ///< of the others, those that later prompts may reuse
  double seconds = 0;    ///< reading, without waiting
  double queue_seconds = 0;
  KvReport kv;
};

/// More of one answer. The texts of one choice, one after the other, are valid UTF-8.
struct AnswerPart {
  int choice = 0;
  std::string text;  ///< may be empty where a character or a stop string is not complete yet
  struct Token {
    TokenProbability chosen;
    std::vector<TokenProbability> top;  ///< highest first
  };
  std::vector<Token> tokens;  ///< new ones, with Request::top_logprobs >= 0 only
  int64_t n_tokens = 0;       ///< generated since the last part
  bool of_prompt = false;     ///< the tokens are the prompt's; the first one has no probability
};

enum class FinishReason { stop, length };

/// One answer is complete.
struct AnswerEnd {
  int choice = 0;
  FinishReason reason = FinishReason::stop;
  std::string stop;         ///< the stop string that was found; empty: an end token, or length
  int64_t n_generated = 0;  ///< tokens, the end token not included
  double seconds = 0;       ///< since the prompt was read
};

/// The whole request has ended with an error; nothing comes after it.
struct Failure {
  enum class Kind { bad_request, context_exceeded, does_not_fit, cancelled, timeout, internal };
  Kind kind = Kind::internal;
  std::string message;
};

using Update = std::variant<PromptProgress, PromptRead, AnswerPart, AnswerEnd, Failure>;

/// The client's side of a request: updates in order, from the engine's thread to the connection's.
/// It is complete after a Failure or one AnswerEnd for each choice.
class Generation {
 public:
  /// Waits for the next update; nothing when none came in that time.
  std::optional<Update> next(std::chrono::milliseconds wait);
  /// The client has gone: computing ends within one chunk of a prompt or one decode step.
  void cancel();
  bool cancelled() const;

  /// For the scheduler.
  void push(Update update);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Update> updates_;
  bool cancelled_ = false;
};

}  // namespace snapkv::server
