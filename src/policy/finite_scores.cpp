// SPDX-License-Identifier: MIT
#include "policy/finite_scores.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/finite.h"

namespace snapkv {
namespace {

[[noreturn]] void fail_rows(int il, int64_t head, const char* what, int64_t count, int64_t n,
                            int64_t first, double value) {
  fail(ErrorCode::kRuntime,
       "layer {}, KV head {}: {} of {} {} are not finite; the first is that of row {}, which is "
       "{}: the "
       "queries, keys or values that the policy was given are damaged or overflow their type "
       "(--check-tensors finds weights that are not finite; --kv-type f32 has the widest range)",
       il, head, count, n, what, first, non_finite_name(value));
}

/// Calls f(h, the first n_prefix[h] values of row h, on the host) for each row.
template <typename F>
void for_rows(Backend& backend, std::span<const int32_t> n_prefix, const Tensor& values, F f) {
  if (n_prefix.empty()) return;
  const int32_t most = *std::max_element(n_prefix.begin(), n_prefix.end());
  const Buffer row = backend.allocate_host(most * sizeof(float), "scores on the host");
  if (!backend.computes()) return;
  for (int64_t h = 0; h < std::ssize(n_prefix); ++h) {
    const size_t n = n_prefix[h];
    backend.download(row.data(), values.at<const void>(h), n * sizeof(float));
    f(h, std::span(static_cast<const float*>(row.data()), n));
  }
}

}  // namespace

void require_finite_scores(Backend& backend, int il, std::span<const int32_t> n_prefix,
                           const Tensor& scores) {
  for_rows(backend, n_prefix, scores,
           [&](int64_t h, std::span<const float> row) { require_finite_scores(il, h, row); });
}

void require_finite_scores(int il, int64_t head, std::span<const float> scores) {
  const NonFinite found = find_non_finite(scores);
  if (!found) return;
  fail_rows(il, head, "scores", found.count, std::ssize(scores), found.first, found.value);
}

void require_finite_norms(Backend& backend, int il, std::span<const int32_t> n_prefix,
                          std::span<const int32_t> k, const Tensor& norms) {
  for_rows(backend, n_prefix, norms, [&](int64_t h, std::span<const float> row) {
    if (k[h] == n_prefix[h]) return;  // no norms, since the head keeps all rows
    const NonFinite found = find_non_finite(row);
    if (!found) return;
    fail_rows(il, h, "norms of projected values", found.count, std::ssize(row), found.first,
              found.value);
  });
}

}  // namespace snapkv
