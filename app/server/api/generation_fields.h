// SPDX-License-Identifier: MIT
// The request fields that all formats share: sampling, limits, stop strings, logprobs, grammars and
// the cache.
#pragma once

#include "server/api/context.h"
#include "server/api/fields.h"

namespace snapkv::server {

inline constexpr int kMostStops = 16;
inline constexpr int kMostTopLogprobs = 20;

/// Returns a request with the server's defaults and an id that begins with `id_prefix`. Reads the
/// fields for sampling (temperature, top_p, top_k, min_p, repeat_penalty, repeat_last_n,
/// presence_penalty, frequency_penalty, logit_bias, seed), ignore_eos, n, cache_prompt, kv,
/// kv_report and return_progress. Leaves the prompt empty.
Request read_request(const Fields& body, const ApiContext& context, const char* id_prefix);

/// A string, or a list of at most kMostStops; empty ones say nothing.
std::vector<std::string> read_stops(const Fields& body, const char* name);

/// Returns the first of these fields that is present, else -1 (no limit). A value below `least`
/// must be -1.
int64_t read_max_tokens(const Fields& body, std::initializer_list<const char*> names,
                        int64_t least);

/// Reads the reasoning effort from `name` of `owner`: sets the template's variable reasoning_effort
/// unless chat_template_kwargs has it; "none" also sets enable_thinking to false.
void read_effort(const Fields& owner, const char* name, Json& template_variables);

/// Reads llama-server's `reasoning_format`: whether reasoning is separated from the answer (auto,
/// deepseek) or part of it (none).
bool read_splits_reasoning(const Fields& body);

/// Adds a note that names the members of the body which nothing has read, and those that only name
/// something. After all other fields have been read.
void note_unread(const Fields& body, Request& request);

/// Returns random letters and digits that can't be guessed.
std::string random_id(size_t n = 24);

}  // namespace snapkv::server
