// SPDX-License-Identifier: MIT
#include "server/answer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace snapkv::server {
namespace {

double seconds(Answer::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::vector<size_t> end_tokens(const Model& model) {
  std::vector<size_t> ids;
  for (int32_t id = 0; id < model.info().n_vocab; ++id) {
    if (model.is_end_of_generation(id)) ids.push_back(static_cast<size_t>(id));
  }
  return ids;
}

SamplerConfig of_choice(SamplerConfig config, int choice) {
  config.seed += static_cast<uint64_t>(choice);
  return config;
}

}  // namespace

AnswerPart::Token scored_token(const Model& model, std::span<const float> logits, int32_t id,
                               int n_top) {
  const TokenLogprobs found = token_logprobs(logits, id, n_top);
  const auto named = [&](const TokenLogprob& token) {
    return TokenProbability{token.id, model.piece(token.id, true), token.logprob};
  };
  AnswerPart::Token token{named(found.chosen), {}};
  for (const TokenLogprob& other : found.top) token.top.push_back(named(other));
  return token;
}

Answer::Answer(std::unique_ptr<Session> session, const Request& request, int choice,
               int64_t most_tokens, std::optional<GrammarMatcher> matcher)
    : session_(std::move(session)),
      choice_(choice),
      most_tokens_(most_tokens),
      end_tokens_(request.ignore_eos ? end_tokens(session_->model()) : std::vector<size_t>()),
      shows_control_tokens_(request.shows_control_tokens),
      top_logprobs_(request.top_logprobs),
      is_end_(request.make_end_finder ? request.make_end_finder() : nullptr),
      sampler_(of_choice(request.sampler, choice)),
      stream_(request.stops),
      n_prompt_(session_->n_past()) {
  sampler_.accept(request.prompt.tokens);
  if (matcher) sampler_.set_grammar(std::move(*matcher));
}

std::span<const float> Answer::allowed_logits() {
  const std::span<const float> logits = session_->logits();
  if (end_tokens_.empty()) return logits;
  logits_.assign(logits.begin(), logits.end());
  for (const size_t id : end_tokens_) logits_[id] = -std::numeric_limits<float>::infinity();
  return logits_;
}

/// The session's logits are finite: where there is a grammar, an error is the grammar's, which is
/// the client's.
int32_t Answer::sample() {
  const std::span<const float> logits = allowed_logits();
  if (sampler_.grammar() == nullptr) return sampler_.sample(logits);
  try {
    return sampler_.sample(logits);
  } catch (const Error& e) {
    throw Error(ErrorCode::kUsage, e.what());
  }
}

void Answer::choose(Generation& client) {
  const GrammarMatcher* grammar = sampler_.grammar();
  if (grammar != nullptr && grammar->is_complete() && !grammar->can_continue()) {
    return end(FinishReason::stop,
               client);  // nothing may follow, and a model may have no end token
  }
  const int32_t id = sample();
  const auto now = Clock::now();
  if (!ids_.empty()) longest_gap_ = std::max(longest_gap_, seconds(now - last_token_));
  last_token_ = now;
  if (session_->model().is_end_of_generation(id)) return end(FinishReason::stop, client);
  add_token(id, client);
  if (stream_.stopped() || found_end_) return end(FinishReason::stop, client);
  if (n_generated() >= most_tokens_) end(FinishReason::length, client);
}

void Answer::add_token(int32_t id, Generation& client) {
  const Model& model = session_->model();
  ids_.push_back(id);
  raw_text_ += model.piece(id, /*special=*/true);
  AnswerPart part;
  part.choice = choice_;
  part.text = stream_.push(model.piece(id, shows_control_tokens_));
  found_end_ = is_end_ && is_end_(part.text);
  if (top_logprobs_ >= 0) {
    part.tokens.push_back(scored_token(model, session_->logits(), id, top_logprobs_));
  }
  ++n_unsaid_;
  if (part.text.empty() && part.tokens.empty()) return;
  part.n_tokens = std::exchange(n_unsaid_, 0);
  client.push(std::move(part));
}

void Answer::end_at_length(Generation& client) { end(FinishReason::length, client); }

void Answer::end(FinishReason reason, Generation& client) {
  AnswerPart rest{.choice = choice_, .text = stream_.finish(), .tokens = {}};
  if (!rest.text.empty()) client.push(std::move(rest));
  client.push(
      AnswerEnd{choice_, reason, stream_.stop(), n_generated(), seconds(Clock::now() - began_)});
  done_ = true;
}

std::vector<int32_t> Answer::read_tokens() const {
  return {ids_.begin(), ids_.begin() + (session_->n_past() - n_prompt_)};
}

std::vector<int32_t> Answer::unread() const {
  const int64_t n_read = session_->n_past() - n_prompt_;
  return {ids_.begin() + n_read, ids_.end()};
}

}  // namespace snapkv::server
