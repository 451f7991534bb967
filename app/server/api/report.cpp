// SPDX-License-Identifier: MIT
#include "server/api/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

namespace snapkv::server {
namespace {

constexpr double kLeastLogprob = -9999.0;  // OpenAI's minimum, since JSON has no infinity

double rate(int64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0.0;
}

double per_token_ms(int64_t n, double seconds) {
  return n > 0 ? seconds * 1e3 / static_cast<double>(n) : 0.0;
}

double finite(double logprob) {
  return std::isfinite(logprob) ? std::max(logprob, kLeastLogprob) : kLeastLogprob;
}

/// Returns a token's text; bytes that are only part of a character become U+FFFD.
std::string token_text(const TokenProbability& token) {
  return Json::parse(to_text(Json(token.bytes))).get<std::string>();
}

Json token_json(const TokenProbability& token) {
  Json bytes = Json::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token_text(token)}, {"logprob", finite(token.logprob)}, {"bytes", bytes}};
}

}  // namespace

Json usage_json(const AnswerTimes& times) {
  return {{"prompt_tokens", times.n_prompt},
          {"completion_tokens", times.n_generated},
          {"total_tokens", times.n_prompt + times.n_generated},
          {"prompt_tokens_details", {{"cached_tokens", times.n_reused}}},
          {"completion_tokens_details", answer_details_json(times)}};
}

Json answer_details_json(const AnswerTimes& times) {
  Json json = {{"reasoning_tokens", times.n_reasoning}};
  if (times.n_drafted > 0) {
    json["accepted_prediction_tokens"] = times.n_accepted;
    json["rejected_prediction_tokens"] = times.n_drafted - times.n_accepted;
  }
  return json;
}

Json timings_json(const AnswerTimes& times) {
  const int64_t n_read = times.n_prompt - times.n_reused;
  Json json = {{"cache_n", times.n_reused},
               {"prompt_n", n_read},
               {"prompt_ms", times.prompt_seconds * 1e3},
               {"prompt_per_token_ms", per_token_ms(n_read, times.prompt_seconds)},
               {"prompt_per_second", rate(n_read, times.prompt_seconds)},
               {"predicted_n", times.n_generated},
               {"predicted_ms", times.answer_seconds * 1e3},
               {"predicted_per_token_ms", per_token_ms(times.n_generated, times.answer_seconds)},
               {"predicted_per_second", rate(times.n_generated, times.answer_seconds)}};
  if (times.n_drafted > 0) {
    json["draft_n"] = times.n_drafted;
    json["draft_n_accepted"] = times.n_accepted;
  }
  return json;
}

Json progress_json(const PromptProgress& progress) {
  const int64_t n_new = progress.n_total - progress.n_reused;
  const auto n_read = static_cast<int64_t>(progress.fraction * static_cast<double>(n_new));
  return {{"total", progress.n_total},
          {"cache", progress.n_reused},
          {"processed", progress.n_reused + n_read},
          {"time_ms", static_cast<int64_t>(progress.seconds * 1e3)}};
}

Json chat_logprobs_json(const std::vector<AnswerPart::Token>& tokens) {
  Json content = Json::array();
  for (const AnswerPart::Token& token : tokens) {
    Json entry = token_json(token.chosen);
    entry["top_logprobs"] = Json::array();
    for (const TokenProbability& other : token.top) {
      entry["top_logprobs"].push_back(token_json(other));
    }
    content.push_back(entry);
  }
  return {{"content", content}, {"refusal", nullptr}};
}

Json text_logprobs_json(const std::vector<AnswerPart::Token>& tokens, int64_t& offset,
                        const std::vector<AnswerPart::Token>& prompt) {
  Json json = {{"tokens", Json::array()},
               {"token_logprobs", Json::array()},
               {"top_logprobs", Json::array()},
               {"text_offset", Json::array()}};
  const auto add = [&](const AnswerPart::Token& token, bool is_known) {
    const std::string text = token_text(token.chosen);
    json["tokens"].push_back(text);
    json["token_logprobs"].push_back(is_known ? Json(finite(token.chosen.logprob)) : Json());
    Json top = Json::object();
    for (const TokenProbability& other : token.top) {
      top[token_text(other)] = finite(other.logprob);
    }
    json["top_logprobs"].push_back(is_known ? top : Json());
    json["text_offset"].push_back(offset);
    offset += std::count_if(text.begin(), text.end(),
                            [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
  };
  for (size_t i = 0; i < prompt.size(); ++i) add(prompt[i], i > 0);
  for (const AnswerPart::Token& token : tokens) add(token, true);
  return json;
}

std::string time_text(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string event_text(const Json& data, const char* name) {
  std::string text;
  if (name != nullptr) text = std::string("event: ") + name + "\n";
  return text + "data: " + to_text(data) + "\n\n";
}

}  // namespace snapkv::server
