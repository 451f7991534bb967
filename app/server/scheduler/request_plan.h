// SPDX-License-Identifier: MIT
// RequestPlan: the bytes that a request takes, computed before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/request.h"
#include "server/request_engine.h"
#include "snapkv/engine.h"

namespace snapkv::server {

struct RequestPlan {
  int64_t most_tokens = 0;   ///< limit of each answer
  int64_t paid_tokens = 0;   ///< of them, tokens that running_bytes has room for
  size_t running_bytes = 0;  ///< reserved until the answers are done
  size_t reading_bytes = 0;  ///< reserved until the prompt is read
  size_t prefix_bytes = 0;   ///< size of all rows of the prompt
  /// Of running_bytes, those of the prompt's rows, where the policy may keep fewer than its budget;
  /// else 0.
  size_t most_kept_bytes = 0;

  /// Bytes without which the request can't be served.
  size_t needed_bytes() const { return running_bytes + reading_bytes; }
};

/// Tokens that an answer without a limit of its own has reserved at a time.
inline constexpr int64_t kPaidTokens = 1024;

/// Tokens of the whole prompt, including a document that it continues.
int64_t prompt_tokens(const Request& request);

/// `request.session` must be complete. Throws Refused{kContextExceeded} when the prompt fills the
/// context, Error{kUsage} for options that can't work.
RequestPlan plan_request(const Model& model, const Request& request);
/// Bytes that the shortest request needs, a token and an answer of one: a server with less memory
/// can serve nothing.
size_t least_memory(const Model& model, const SessionOptions& session);
/// Bytes by which the caches of n answers grow with one token each.
size_t token_bytes(const Model& model, const Request& request);
/// Tokens of the longest prompt with which this request would take at most `limit` bytes.
int64_t longest_prompt_within(const Model& model, const Request& request, size_t limit);

/// Whether the prompt can be read with `limit` bytes for the request, and how long it may be.
/// Throws Error{kUsage} as plan_request().
PromptFit fit_prompt(const Model& model, const Request& request, size_t limit);

}  // namespace snapkv::server
