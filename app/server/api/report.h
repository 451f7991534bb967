// SPDX-License-Identifier: MIT
// Parts of answers that several formats share: token counts, times, probabilities.
#pragma once

#include "server/json.h"
#include "server/request.h"

namespace snapkv::server {

/// The tokens and times of an answer, for `timings` and the metrics.
struct AnswerTimes {
  int64_t n_prompt = 0, n_reused = 0, n_stored = 0, n_generated = 0;
  int64_t n_reasoning = 0;  ///< of those that were generated, about
  int64_t n_drafted = 0, n_accepted = 0;
  double prompt_seconds = 0, answer_seconds = 0;
};

/// OpenAI's {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}.
Json usage_json(const AnswerTimes& times);
/// Details of an answer's tokens as OpenAI's usage has them: reasoning_tokens and, where tokens were
/// guessed, accepted_prediction_tokens and rejected_prediction_tokens.
Json answer_details_json(const AnswerTimes& times);
/// llama-server's {"cache_n", "prompt_n", "prompt_ms", ...}.
Json timings_json(const AnswerTimes& times);
/// llama-server's {"total", "cache", "processed", "time_ms"}.
Json progress_json(const PromptProgress& progress);

/// Chat's {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}.
Json chat_logprobs_json(const std::vector<AnswerPart::Token>& tokens);
/// The older {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; `offset`: characters of
/// the text before the first token. `prompt`: the prompt's tokens in front of them, of which the
/// first has no probability.
Json text_logprobs_json(const std::vector<AnswerPart::Token>& tokens, int64_t& offset,
                        const std::vector<AnswerPart::Token>& prompt = {});

/// Seconds since 1970 as "2026-01-31T12:00:00Z".
std::string time_text(int64_t seconds);

/// A server-sent event: "event: NAME\n" (if not null), "data: JSON\n\n".
std::string event_text(const Json& data, const char* name = nullptr);

}  // namespace snapkv::server
