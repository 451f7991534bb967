// SPDX-License-Identifier: MIT
#include "policy/finite_scores.h"

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/finite.h"
#include "policy/host_rows.h"

namespace snapkv {
namespace {

[[noreturn]] void fail_rows(int il, const char* head_kind, int64_t head, const char* what,
                            int64_t count, int64_t n, int64_t first, double value) {
  fail(ErrorCode::kRuntime,
       "layer {}, {} {}: {} of {} {} are not finite; the first is that of row {}, which is {}: the "
       "queries, keys or values that the policy was given are damaged or overflow their type "
       "(--check-tensors finds weights that are not finite; --kv-type f32 has the widest range)",
       il, head_kind, head, count, n, what, first, non_finite_name(value));
}

}  // namespace

void require_finite_scores(Backend& backend, int il, std::span<const int32_t> n_prefix,
                           const Tensor& scores) {
  for (int64_t h = 0; h < std::ssize(n_prefix); ++h) {
    const std::vector<float> row = read_scores(backend, scores, h, n_prefix[h]);
    const NonFinite found = find_non_finite(row);
    if (!found) continue;
    fail_rows(il, "KV head", h, "scores", found.count, std::ssize(row), found.first, found.value);
  }
}

void require_finite_norms(int il, int64_t head, std::span<const double> norms) {
  int64_t count = 0, first = -1;
  for (int64_t j = 0; j < std::ssize(norms); ++j) {
    if (std::isfinite(norms[j])) continue;
    if (count++ == 0) first = j;
  }
  if (count == 0) return;
  fail_rows(il, "query head", head, "norms of projected values", count, std::ssize(norms), first,
            norms[first]);
}

}  // namespace snapkv
