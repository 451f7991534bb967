// SPDX-License-Identifier: MIT
// Answer: one text that is being written: its session, its sampler, what of its text is certain.
// Used by the scheduler's loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/generation.h"
#include "snapkv/engine.h"
#include "snapkv/text_stream.h"

namespace snapkv::server {

/// A token with its probability, and those of the `n_top` most likely ones.
AnswerPart::Token scored_token(const Model& model, std::span<const float> logits, int32_t id,
                               int n_top);

class Answer {
 public:
  using Clock = std::chrono::steady_clock;

  /// `session` has read the prompt. `most_tokens`: that the answer may have; with 0 only
  /// end_at_length() may follow. `matcher`: of the request's grammar, if it has one.
  Answer(std::unique_ptr<Session> session, const Request& request, int choice, int64_t most_tokens,
         std::optional<GrammarMatcher> matcher);

  /// Chooses the next token from the session's logits and tells the client. Throws as
  /// Sampler::sample().
  void choose(Generation& client);
  /// Ends the answer as if it had reached its most tokens.
  void end_at_length(Generation& client);

  bool done() const { return done_; }
  /// The token that the session has to decode next; not when done().
  int32_t next_token() const { return ids_.back(); }
  int64_t n_generated() const { return std::ssize(ids_); }
  Session& session() { return *session_; }
  /// Most seconds between two tokens so far.
  double longest_gap() const { return longest_gap_; }

  // for conversations that go on
  std::unique_ptr<Session> take_session() { return std::move(session_); }
  /// What the model wrote, with control tokens, all bytes.
  const std::string& raw_text() const { return raw_text_; }
  /// The tokens that the session has read, and the last ones, which it has not.
  std::vector<int32_t> read_tokens() const;
  std::vector<int32_t> unread() const;

 private:
  std::span<const float> allowed_logits();
  int32_t sample();
  void add_token(int32_t id, Generation& client);
  void end(FinishReason reason, Generation& client);

  std::unique_ptr<Session> session_;
  const int choice_;
  const int64_t most_tokens_;
  const std::vector<size_t> end_tokens_;  // those that must not end it
  const bool shows_control_tokens_;
  const int top_logprobs_;
  const std::function<bool(std::string_view text)> is_end_;  // empty: none
  Sampler sampler_;
  TextStream stream_;
  const int64_t n_prompt_;
  std::vector<float> logits_;  // without end_tokens_, where there are any
  std::vector<int32_t> ids_;
  std::string raw_text_;
  int64_t n_unsaid_ = 0;    // tokens since the last part
  bool found_end_ = false;  // by is_end_
  bool done_ = false;
  Clock::time_point began_ = Clock::now(), last_token_ = began_;
  double longest_gap_ = 0;
};

}  // namespace snapkv::server
