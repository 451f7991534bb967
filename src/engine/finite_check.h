// SPDX-License-Identifier: MIT
// The one place that refuses logits and attention which are NaN or infinite: a model with damaged
// weights, or one that overflows the type it is computed in, must not be scored or sampled as if it
// had answered. Called by prefill.cpp, decode.cpp and attention_probe.cpp; the scores of policies
// are checked by policy/finite_scores.h.
#pragma once

#include <cstdint>
#include <span>

namespace snapkv {

/// Throws Error{kRuntime} that counts the values of `logits` ([n, n_vocab], of `what`) which are
/// not finite and names the first one's row (the prompt's token, the session of the batch) and
/// token.
void require_finite_logits(std::span<const float> logits, int64_t n_vocab, const char* what);

/// Throws Error{kRuntime} naming layer, query head and key of the first value of `sums` ([n_head,
/// n_keys]) that is not finite.
void require_finite_attention(std::span<const float> sums, int il, int64_t n_keys);

}  // namespace snapkv
