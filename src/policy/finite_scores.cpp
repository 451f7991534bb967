// SPDX-License-Identifier: MIT
#include "policy/finite_scores.h"

#include <cmath>
#include <vector>

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

/// The first n values of row h, on the host.
std::vector<float> read_row(Backend& backend, const Tensor& values, int64_t h, int32_t n) {
  std::vector<float> row(n);
  backend.download(row.data(), values.at<const void>(h), row.size() * sizeof(float));
  return row;
}

}  // namespace

void require_finite_scores(Backend& backend, int il, std::span<const int32_t> n_prefix,
                           const Tensor& scores) {
  for (int64_t h = 0; h < std::ssize(n_prefix); ++h) {
    const std::vector<float> row = read_row(backend, scores, h, n_prefix[h]);
    const NonFinite found = find_non_finite(row);
    if (!found) continue;
    fail_rows(il, h, "scores", found.count, std::ssize(row), found.first, found.value);
  }
}

void require_finite_norms(Backend& backend, int il, std::span<const int32_t> n_prefix,
                          std::span<const int32_t> k, const Tensor& norms) {
  for (int64_t h = 0; h < std::ssize(n_prefix); ++h) {
    if (k[h] == n_prefix[h]) continue;  // no norms, since the head keeps all rows
    const std::vector<float> row = read_row(backend, norms, h, n_prefix[h]);
    const NonFinite found = find_non_finite(row);
    if (!found) continue;
    fail_rows(il, h, "norms of projected values", found.count, std::ssize(row), found.first,
              found.value);
  }
}

}  // namespace snapkv
