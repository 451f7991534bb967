// SPDX-License-Identifier: MIT
// A client's request in the scheduler's form, and the updates that come back while it is computed.
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

#include "long_documents/plan.h"
#include "snapkv/engine.h"
#include "snapkv/grammar.h"

namespace snapkv::chat {
struct Document;  // chat/document.h
}

namespace snapkv::server {

using chat::Document;
using long_documents::LongMode;

class LongReading;  // api/long_reading.h

/// A prompt as text or as tokens.
struct Prompt {
  /// Output of a chat template, or plain text (then `input` is empty, and control tokens written
  /// out in the text are control tokens). Empty if the client sent tokens.
  RenderedChat chat;
  /// The whole prompt, including the beginning-of-text token.
  std::vector<int32_t> tokens;
};

/// How much of the cache's state the answer reports: nothing, sizes, these and the positions that
/// are kept, these and the passages that the answer was taken from, or all of it.
enum class KvReportLevel { none, summary, positions, sources, all };
inline bool reports_positions(KvReportLevel level) {
  return level == KvReportLevel::positions || level == KvReportLevel::all;
}
inline bool reports_sources(KvReportLevel level) {
  return level == KvReportLevel::sources || level == KvReportLevel::all;
}

/// A text of the prompt that an answer may be taken from.
struct CitableText {
  int64_t index = 0;  ///< of its message or document; -1: the snapshot that the prompt continues
  std::string text;
  int64_t begin = 0;  ///< where it begins in that message or document, in characters
};
inline constexpr int64_t kSnapshotText = -1;

/// A sentence that an answer was taken from (snapkv/sources.h).
struct CitedPassage {
  int64_t index = 0;           ///< CitableText::index
  int64_t begin = 0, end = 0;  ///< in characters of that text
  float attention = 0;
  std::string text;
};

/// What the scheduler is told about the text of an answer that has just been written.
struct Watched {
  bool ends = false;  ///< the answer ends there
  /// A call began in it: from there on Request::call_grammar holds, whose texts begin so.
  std::optional<std::string> begun_call;
};

struct Request {
  std::string id;  ///< "chatcmpl-...": the answer's id, for logs and /slots
  Prompt prompt;
  SessionOptions session;  ///< what is kept of the prompt; all fields except kv, kv_memory and
                           ///< kv_decode_limit are set by the scheduler
  SamplerConfig sampler;
  std::shared_ptr<const Grammar> grammar;  ///< null: none
  int n = 1;                               ///< answers to the same prompt; the i-th has the seed + i
  int64_t max_tokens = -1;  ///< of each answer; -1: until the context is full; 0: only the
                            ///< prompt is read
  std::vector<std::string> stops;
  /// Null, or the grammar of the calls that `make_watch` finds; there is no other `grammar` then.
  std::shared_ptr<const Grammar> call_grammar;
  /// Makes a function that receives an answer's text as it arrives; one for each answer. Empty:
  /// none.
  std::function<std::function<Watched(std::string_view text)>()> make_watch;
  bool ignore_eos = false;
  /// Whether control tokens that do not end the answer are part of its text, as markers of tool
  /// calls are in some formats.
  bool shows_control_tokens = false;
  int top_logprobs = -1;  ///< alternatives for each token; -1: no logprobs
  /// With top_logprobs >= 0: those of the prompt's tokens come too, before the answer.
  bool scores_prompt = false;
  bool reports_progress = false;
  KvReportLevel kv_report = KvReportLevel::summary;
  /// Whether the request may continue a kept conversation, and be continued itself.
  bool reuses = true;
  /// If not null, the prompt continues this document, and its tokens are those after it.
  std::shared_ptr<const Document> document;
  std::string snapshot;  ///< the name of `document`, for the report
  /// If not null, another server has read the whole prompt, and the answer begins from this session.
  std::shared_ptr<const SavedSessionFile> read;
  /// For RequestEngine::make_snapshot(): another server answers this prompt, and prompts that begin
  /// alike will come here again.
  bool is_for_others = false;
  /// The texts among which each answer's sources are looked for; empty: they are not wanted.
  std::vector<CitableText> citable;
  /// What is done where a document of the messages is longer than the context.
  LongMode long_mode = LongMode::refuse;
  /// If not null, that is done: requests for its parts come before this one.
  std::shared_ptr<LongReading> long_reading;
  /// For RequestEngine::make_snapshot(): writes every row; each question makes its own selection.
  bool keeps_all = false;
  /// Time limit in seconds, after which the request ends with an error; 0: none.
  double timeout = 0;
  /// What is done otherwise than the client asked for; its answer's header says so.
  std::vector<std::string> warnings;
  /// What is ignored or has another name to the model, without a difference to the client; the
  /// server's log says so where it is verbose.
  std::vector<std::string> notes;
};

struct TokenProbability {
  int32_t id = 0;
  std::string bytes;     ///< bytes of the piece; may be part of a character
  double logprob = 0.0;  ///< natural logarithm, from the model's own distribution
};

// ---------------------------------------------------------------- what comes back

/// Progress of reading the prompt; sent a few times a second with Request::reports_progress.
struct PromptProgress {
  int64_t n_total = 0;   ///< tokens of the prompt
  int64_t n_reused = 0;  ///< tokens that did not have to be read again
  double fraction = 0;   ///< part of the remaining work that is done, 0 to 1
  double seconds = 0;    ///< since the start of reading
};

/// The state of the prompt's cache.
struct KvReport {
  std::string policy;
  int64_t tokens_before = 0;  ///< tokens of the prompt
  int64_t tokens_kept = 0;    ///< rows per layer and KV head: the mean, rounded
  size_t bytes_before = 0;    ///< size of a full cache of the prompt
  size_t bytes_after = 0;     ///< size of the rows that were kept
  double compress_seconds = 0;
  int64_t reused_tokens = 0;
  /// [n_layer][n_head_kv]: true positions kept; empty unless reports_positions().
  std::vector<std::vector<std::vector<int32_t>>> positions;
};

/// The prompt has been read; sent once, before any text.
struct PromptRead {
  int64_t n_tokens = 0;  ///< of the prompt, all of them
  int64_t n_reused = 0;  ///< of a kept conversation, a prefix or a snapshot
  int64_t n_stored = 0;  ///< of the others, those that later prompts may reuse
  double seconds = 0;    ///< reading, without waiting
  double queue_seconds = 0;
  KvReport kv;
};

/// More text of one answer. The texts of one choice together are valid UTF-8.
struct AnswerPart {
  size_t choice = 0;
  std::string text;  ///< empty while a character or a stop string is incomplete
  struct Token {
    TokenProbability chosen;
    std::vector<TokenProbability> top;  ///< highest first
  };
  std::vector<Token> tokens;  ///< new tokens, only with Request::top_logprobs >= 0
  int64_t n_tokens = 0;       ///< generated since the last part
  bool of_prompt = false;     ///< the tokens are the prompt's; the first one has no probability
};

enum class FinishReason { stop, length };

/// One answer is complete.
struct AnswerEnd {
  size_t choice = 0;
  FinishReason reason = FinishReason::stop;
  std::string stop;         ///< the stop string that was found; empty for an end token or a limit
  int64_t n_generated = 0;  ///< tokens, without the end token
  double seconds = 0;       ///< since the prompt was read
  std::vector<CitedPassage> sources = {};  ///< in Request::citable
  int64_t n_drafted = 0;   ///< tokens that were guessed (SessionOptions::draft)
  int64_t n_accepted = 0;  ///< of them, those that were right
};

/// The whole request has ended with an error; nothing follows.
struct Failure {
  enum class Kind { bad_request, context_exceeded, does_not_fit, cancelled, timeout, internal };
  Kind kind = Kind::internal;
  std::string message;
};

using Update = std::variant<PromptProgress, PromptRead, AnswerPart, AnswerEnd, Failure>;

/// The client's side of a request: passes updates in order from the engine's thread to the
/// connection's. It is complete after a Failure, or after an AnswerEnd for each choice.
class RequestUpdates {
 public:
  /// Waits for the next update; returns nothing if none arrives in that time.
  std::optional<Update> next(std::chrono::milliseconds wait);
  /// Called when the client has gone; computing ends within one chunk of a prompt or one decode
  /// step.
  void cancel();
  bool cancelled() const;

  /// Adds an update; for the scheduler.
  void push(Update update);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Update> updates_;
  bool cancelled_ = false;
};

}  // namespace snapkv::server
