// SPDX-License-Identifier: MIT
// Answers: collects the updates of one request; base class of the formats that clients receive. A
// format builds the complete answer from the collected parts, or writes events as they arrive.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/answer_parser.h"
#include "server/api/api_error.h"
#include "server/api/report.h"
#include "server/request.h"

namespace snapkv::server {

using chat::AnswerParser;
using chat::AnswerSyntax;
using chat::Piece;

/// A function call that an answer makes.
struct ToolCall {
  std::string id, name, arguments;
  /// Whether the arguments are a JSON object: models may break off, or write something else.
  bool complete() const { return parse_held(arguments).is_object(); }
};

/// Properties of a request that all formats need.
struct AnswerOptions {
  std::string id;
  std::string model;    ///< name of the model in the answer
  int64_t created = 0;  ///< seconds since 1970
  size_t n = 1;         ///< choices of all prompts together
  bool stream = false;
  bool has_logprobs = false;
  KvReportLevel kv_report = KvReportLevel::summary;
  std::string snapshot;  ///< the name of the one that the request continues
  AnswerSyntax syntax;
  /// Tokens of the prompt after the last cache_control (messages); nothing where there is none.
  std::optional<int64_t> n_uncached;
  /// Titles of the messages' documents (messages); CitedPassage::index counts these.
  std::vector<std::optional<std::string>> document_titles;
  bool cites_documents = false;       ///< messages: the text has citations
  std::vector<std::string> warnings;  ///< for the answer's header
  std::vector<std::string> notes;     ///< for the server's log, as Request::notes
};

class Answers {
 public:
  explicit Answers(AnswerOptions options);
  virtual ~Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// Takes an update, except Failure. For a stream: returns the events to send now, possibly none.
  std::string take(const Update& update);
  bool complete() const { return n_open_ == 0; }

  /// The answer as one JSON document, when complete.
  virtual Json plain() const = 0;
  /// For a stream: the event for an error, after which nothing more is sent.
  virtual std::string failed(const ApiError& error);
  /// Sent while there is nothing else to send. Clients with a limit for a stream without events
  /// count no comments and, of messages, no pings: where events may be repeated, it is one of these.
  virtual std::string ping() { return ": ping\n\n"; }
  /// The type of a stream.
  virtual const char* stream_type() const { return "text/event-stream"; }

  const AnswerOptions& options() const { return options_; }
  AnswerTimes times() const;
  /// For the log: rows kept of the prompt, and why the choices ended, as "stop" or "stop, length".
  int64_t n_rows() const { return prompt_.kv.tokens_kept; }
  std::string finish_reasons() const;

  /// What was read of a document that was longer than the context, for `kv.long`.
  void set_long_report(Json report) { long_report_ = std::move(report); }

 protected:
  struct Choice {
    explicit Choice(const AnswerSyntax& syntax) : parser(std::make_unique<AnswerParser>(syntax)) {}
    std::unique_ptr<AnswerParser> parser;
    std::string content, reasoning;
    std::vector<ToolCall> calls;
    std::vector<AnswerPart::Token> tokens;         ///< for a non-streamed answer
    std::vector<AnswerPart::Token> text_tokens;    ///< those of them that belong to `content`
    std::vector<AnswerPart::Token> held_tokens;    ///< tokens since the last piece
    std::vector<AnswerPart::Token> prompt_tokens;  ///< with Request::scores_prompt
    std::optional<AnswerEnd> end;
    int64_t n_reasoning = 0;  ///< tokens
    int64_t n_held = 0;       ///< tokens since the last piece
    /// "tool_calls", "length" or "stop"
    const char* finish_reason() const;
    /// Whether the choice ends with a call that the client can make.
    bool ends_with_call() const { return !calls.empty() && calls.back().complete(); }
  };

  // The following are for streams; their events go to send().
  virtual void on_progress(const PromptProgress& progress) = 0;
  virtual void on_begin() = 0;  ///< called before all others
  /// Called with new pieces of a choice, and their tokens; either may be empty.
  virtual void on_part(size_t choice, const std::vector<Piece>& pieces,
                       const std::vector<AnswerPart::Token>& tokens) = 0;
  virtual void on_end(size_t choice) = 0;
  virtual void on_complete() = 0;

  void send(const std::string& text) { events_ += text; }
  /// What has been sent since take() or the last call.
  std::string sent() { return std::exchange(events_, {}); }
  void begin();  ///< calls on_begin() for a stream, once
  const std::vector<Choice>& choices() const { return choices_; }
  /// Adds `timings` and, if the request asks for it, `kv`.
  void add_reports(Json& json) const;
  Json sources_json() const;

 private:
  static void add_tokens(Choice& choice, const std::vector<Piece>& pieces,
                         const std::vector<AnswerPart::Token>& tokens);
  static void count_reasoning(Choice& choice, const std::vector<Piece>& pieces, int64_t n_tokens);
  void add(size_t choice, std::vector<Piece> pieces, const std::vector<AnswerPart::Token>& tokens);

  const AnswerOptions options_;
  std::vector<Choice> choices_;
  size_t n_open_;
  bool begun_ = false;
  std::string events_;
  PromptRead prompt_;
  Json long_report_;  // null: no such document
};

}  // namespace snapkv::server
