// SPDX-License-Identifier: MIT
// Rejects logits and attention that are NaN or infinite: a model with damaged weights, or one that
// overflows its compute type, must not be scored or sampled as if it had answered.
// policy/finite_scores.h does the same for the scores of policies.
#pragma once

#include <cstdint>
#include <span>

namespace snapkv {

/// Throws Error{kRuntime} unless all `logits` [n, n_vocab] are finite. The message counts the
/// others, says whose they are (`what`) and names the first one's row (a token of the prompt or a
/// session of the batch) and token.
void require_finite_logits(std::span<const float> logits, int64_t n_vocab, const char* what);

/// Throws Error{kRuntime} naming layer, query head and key of the first value of `sums` [n_head,
/// n_keys] that is not finite.
void require_finite_attention(std::span<const float> sums, int il, int64_t n_keys);

}  // namespace snapkv
