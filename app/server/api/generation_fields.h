// SPDX-License-Identifier: MIT
// The fields of requests that all formats share: sampling, limits, stop strings, logprobs, grammars
// and what the cache keeps.
#pragma once

#include "server/api/context.h"
#include "server/api/fields.h"

namespace snapkv::server {

inline constexpr int kMostStops = 16;
inline constexpr int kMostTopLogprobs = 20;

/// A request with the server's defaults, an id that begins with `id_prefix`, and what the fields
/// say of sampling (temperature, top_p, top_k, min_p, repeat_penalty, repeat_last_n,
/// presence_penalty, frequency_penalty, logit_bias, seed), ignore_eos, n, cache_prompt, kv,
/// kv_report and return_progress. The prompt is left empty.
Request read_request(const Fields& body, const ApiContext& context, const char* id_prefix);

/// A string, or a list of at most kMostStops; empty ones say nothing.
std::vector<std::string> read_stops(const Fields& body, const char* name);

/// The first of these fields that is there, -1 otherwise. `least`: below it only -1 is possible,
/// which is no limit.
int64_t read_max_tokens(const Fields& body, std::initializer_list<const char*> names,
                        int64_t least);

/// `name` of `owner`, how much the model shall think: the template's variable reasoning_effort,
/// where chat_template_kwargs has none; "none" also sets enable_thinking to false.
void read_effort(const Fields& owner, const char* name, Json& template_variables);

/// llama-server's `reasoning_format`: whether what the model thinks is told from its answer (auto,
/// deepseek) or is part of it (none).
bool read_splits_reasoning(const Fields& body);

/// Letters and digits that nobody can guess.
std::string random_id(size_t n = 24);

}  // namespace snapkv::server
