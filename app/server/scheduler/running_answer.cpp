// SPDX-License-Identifier: MIT
#include "server/scheduler/running_answer.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/document.h"
#include "snapkv/prefill.h"
#include "snapkv/sources.h"

namespace snapkv::server {
namespace {

double seconds(RunningAnswer::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Negative seeds count down, so that none becomes kRandomSeed.
SamplerConfig of_choice(SamplerConfig config, size_t choice) {
  if (config.seed == SamplerConfig::kRandomSeed) return config;
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  config.seed = static_cast<int64_t>(config.seed < 0 ? seed - choice : seed + choice);
  return config;
}

FinishReason finish_reason(StopReason reason) {
  return reason == StopReason::length || reason == StopReason::context ? FinishReason::length
                                                                       : FinishReason::stop;
}

int64_t n_characters(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

AnswerPart::Token reported_token(const Model& model, const TokenLogprobs& token) {
  const auto named = [&](const TokenLogprob& of) {
    return TokenProbability{of.id, model.piece(of.id, true), of.logprob};
  };
  AnswerPart::Token reported{named(token.chosen), {}};
  for (const TokenLogprob& other : token.top) reported.top.push_back(named(other));
  return reported;
}

RunningAnswer::RunningAnswer(std::unique_ptr<Session> session, const Request& request,
                             size_t choice, int64_t most_tokens,
                             std::optional<GrammarMatcher> matcher)
    : request_(request),
      session_(std::move(session)),
      choice_(choice),
      sampler_(of_choice(request.sampler, choice)),
      n_prompt_(session_->n_past()),
      watch_(request.make_watch ? request.make_watch() : nullptr),
      generator_(*session_, sampler_, generator_options(most_tokens)) {
  if (request.document != nullptr && request.document->rows != nullptr) {
    sampler_.accept(request.document->rows->tokens());
  }
  sampler_.accept(request.prompt.tokens);
  if (!request.citable.empty()) session_->trace_answer();
  if (request.grammar) {
    if (matcher) sampler_.set_grammar(std::move(*matcher));
  } else {
    call_matcher_ = std::move(matcher);
  }
}

GeneratorOptions RunningAnswer::generator_options(int64_t most_tokens) {
  GeneratorOptions options = {.max_tokens = most_tokens,
                              .stops = request_.stops,
                              .ignore_eos = request_.ignore_eos,
                              .shows_control_tokens = request_.shows_control_tokens,
                              .top_logprobs = request_.top_logprobs};
  if (watch_) {
    options.is_end = [this](std::string_view text) {
      Watched seen = watch_(text);
      begun_call_ = std::move(seen.begun_call);
      return seen.ends;
    };
  }
  return options;
}

/// Chooses a token. The session's logits are finite, so with a grammar an error comes from the
/// grammar, and the client is to blame; a call by itself then goes on without one.
bool RunningAnswer::choose_token() {
  if (sampler_.grammar() == nullptr) return generator_.choose();
  try {
    return generator_.choose();
  } catch (const Error& e) {
    if (!call_matcher_) throw Error(ErrorCode::kUsage, e.what());
  }
  sampler_.clear_grammar();
  return generator_.choose();
}

/// After a token: the grammar of calls holds from a call's beginning to its end.
void RunningAnswer::begin_or_end_call() {
  if (!call_matcher_) return;
  if (sampler_.grammar() == nullptr && begun_call_) {
    GrammarMatcher matcher = *call_matcher_;
    try {
      matcher.accept_text(*begun_call_);
    } catch (const Error&) {
      return;  // the token has begun something else, which remains text if it is not a call
    }
    sampler_.set_grammar(std::move(matcher));
  }
  if (sampler_.grammar() != nullptr && sampler_.grammar()->is_complete()) sampler_.clear_grammar();
}

void RunningAnswer::choose(RequestUpdates& client) {
  if (choose_token()) {
    begin_or_end_call();
    const auto now = Clock::now();
    if (n_generated() > 1) longest_gap_ = std::max(longest_gap_, seconds(now - last_token_));
    last_token_ = now;
    report_token(client);
  }
  if (generator_.done()) end(client);
}

int64_t RunningAnswer::choose_all(RequestUpdates& client) {
  const int64_t n_before = n_generated();
  while (!done() && !generator_.must_read()) choose(client);
  return n_generated() - n_before;
}

void RunningAnswer::report_token(RequestUpdates& client) {
  const Model& model = session_->model();
  const GeneratedToken& token = generator_.token();
  raw_text_ += model.piece(token.id, /*special=*/true);
  AnswerPart part;
  part.choice = choice_;
  part.text = token.text;
  if (token.logprobs) part.tokens.push_back(reported_token(model, *token.logprobs));
  ++n_unsaid_;
  if (part.text.empty() && part.tokens.empty()) return;
  part.n_tokens = std::exchange(n_unsaid_, 0);
  client.push(std::move(part));
}

void RunningAnswer::end_at_length(RequestUpdates& client) {
  generator_.stop(StopReason::length);
  end(client);
}

/// The passages of the request's texts that the answer attended to; none if the template has
/// changed all of these texts.
std::vector<CitedPassage> RunningAnswer::sources() {
  if (request_.citable.empty()) return {};
  std::vector<std::string_view> texts;
  for (const CitableText& citable : request_.citable) texts.push_back(citable.text);
  std::vector<int32_t> tokens;
  if (request_.document != nullptr && request_.document->rows != nullptr) {
    const std::span<const int32_t> stored = request_.document->rows->tokens();
    tokens.assign(stored.begin(), stored.end());
  }
  tokens.insert(tokens.end(), request_.prompt.tokens.begin(), request_.prompt.tokens.end());
  std::vector<SourcePassage> found;
  try {
    found = find_sources(session_->model(), tokens, session_->answer_attention(), texts);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
  }
  std::vector<CitedPassage> passages;
  for (const SourcePassage& source : found) {
    const std::string_view text = texts[source.document];
    const std::string_view words = text.substr(source.begin, source.end - source.begin);
    const int64_t begin =
        request_.citable[source.document].begin + n_characters(text.substr(0, source.begin));
    passages.push_back({request_.citable[source.document].index, begin, begin + n_characters(words),
                        source.attention, std::string(words)});
  }
  return passages;
}

void RunningAnswer::end(RequestUpdates& client) {
  AnswerPart rest{.choice = choice_, .text = generator_.rest(), .tokens = {}};
  if (!rest.text.empty()) client.push(std::move(rest));
  client.push(AnswerEnd{choice_, finish_reason(generator_.stop_reason()), generator_.stop_string(),
                        n_generated(), seconds(Clock::now() - began_), sources(), n_drafted(),
                        n_accepted()});
  ended_ = true;
}

std::vector<int32_t> RunningAnswer::read_tokens() const {
  const std::vector<int32_t>& ids = generator_.ids();
  return {ids.begin(), ids.begin() + (session_->n_past() - n_prompt_)};
}

std::vector<int32_t> RunningAnswer::unread() const {
  const std::vector<int32_t>& ids = generator_.ids();
  return {ids.begin() + (session_->n_past() - n_prompt_), ids.end()};
}

}  // namespace snapkv::server
