// SPDX-License-Identifier: MIT
#include "engine/core/finite_check.h"

#include "base/error.h"
#include "base/finite.h"

namespace snapkv {
namespace {

constexpr const char* kCauses =
    "either the file's weights are damaged (--check-tensors finds those that are not finite), or "
    "its activations overflow (--compute f32 with --kv-type f32 has the widest range)";

}  // namespace

void require_finite_logits(std::span<const float> logits, int64_t n_vocab, const char* what) {
  const NonFinite found = find_non_finite(logits);
  if (!found) return;
  fail(ErrorCode::kRuntime,
       "{} of {} logits of {} are not finite; the first is that of token {} in row {}, which is "
       "{}: {}",
       found.count, logits.size(), what, found.first % n_vocab, found.first / n_vocab,
       non_finite_name(found.value), kCauses);
}

void require_finite_attention(std::span<const float> sums, int il, int64_t n_keys) {
  const NonFinite found = find_non_finite(sums);
  if (!found) return;
  fail(ErrorCode::kRuntime,
       "{} of {} sums of attention of layer {} are not finite; the first is that of query head {} "
       "for key {}, which is {}: {}",
       found.count, sums.size(), il, found.first / n_keys, found.first % n_keys,
       non_finite_name(found.value), kCauses);
}

}  // namespace snapkv
