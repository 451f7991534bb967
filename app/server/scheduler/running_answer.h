// SPDX-License-Identifier: MIT
// RunningAnswer: one text that is being written for a client, with its session and its generator.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/request.h"
#include "snapkv/engine.h"
#include "snapkv/generator.h"

namespace snapkv::server {

/// A token with its probability and those of the most likely ones, as clients get them.
AnswerPart::Token reported_token(const Model& model, const TokenLogprobs& token);

class RunningAnswer {
 public:
  using Clock = std::chrono::steady_clock;

  /// `request` must outlive this, and `session` has read its prompt. `most_tokens`: limit of the
  /// answer; with 0 only end_at_length() may be called. `matcher`: for the request's grammar or
  /// call_grammar, if it has one.
  RunningAnswer(std::unique_ptr<Session> session, const Request& request, size_t choice,
                int64_t most_tokens, std::optional<GrammarMatcher> matcher);

  /// Chooses the next token from the session's logits and reports it to the client. Throws as
  /// Sampler::sample().
  void choose(RequestUpdates& client);
  /// Chooses and reports tokens for as long as the session has read what comes before. Returns how
  /// many.
  int64_t choose_all(RequestUpdates& client);
  /// Ends the answer as if it had reached its token limit.
  void end_at_length(RequestUpdates& client);

  bool done() const { return ended_; }
  /// The tokens that the session must decode next; not valid when done().
  StepTokens next_tokens() { return generator_.next_tokens(); }
  Generator& generator() { return generator_; }
  int64_t n_generated() const { return std::ssize(generator_.ids()); }
  /// Tokens that were guessed and checked, and how many of them were right.
  int64_t n_drafted() const { return generator_.n_drafted(); }
  int64_t n_accepted() const { return generator_.n_accepted(); }
  Session& session() { return *session_; }
  /// Longest time between two tokens so far, in seconds.
  double longest_gap() const { return longest_gap_; }

  // for conversations that may continue
  std::unique_ptr<Session> take_session() { return std::move(session_); }
  /// All bytes that the model wrote, including control tokens.
  const std::string& raw_text() const { return raw_text_; }
  /// The tokens that the session has read; unread() has the last ones, which it has not.
  std::vector<int32_t> read_tokens() const;
  std::vector<int32_t> unread() const;

 private:
  GeneratorOptions generator_options(int64_t most_tokens);
  bool choose_token();
  void begin_or_end_call();
  std::vector<CitedPassage> sources();
  void report_token(RequestUpdates& client);
  void end(RequestUpdates& client);

  const Request& request_;
  std::unique_ptr<Session> session_;
  const size_t choice_;
  Sampler sampler_;
  const int64_t n_prompt_;
  std::optional<GrammarMatcher> call_matcher_;  // at the beginning of Request::call_grammar
  std::function<Watched(std::string_view text)> watch_;
  std::optional<std::string> begun_call_;  // Watched::begun_call of the last token
  Generator generator_;
  std::string raw_text_;
  int64_t n_unsaid_ = 0;  // tokens since the last part
  bool ended_ = false;    // the client has been told
  Clock::time_point began_ = Clock::now(), last_token_ = began_;
  double longest_gap_ = 0;
};

}  // namespace snapkv::server
