// SPDX-License-Identifier: MIT
// Convolutions along sequences as plain loops; ops.def defines them.
#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

// out[t, i] = c[t, i] sum_j weight[i, j] y[t - (k - 1) + j, i], y = b x
void short_conv(const ShortConv& c) {
  const int64_t d = c.weight.shape[0], n_before = c.weight.shape[1] - 1;
  for (const SequenceRows& rows : c.sequences) {
    const auto y = [&](int64_t t, int64_t i) -> double {
      if (t < rows.begin) return get(rows.from, DType::f32, (t - rows.begin + n_before) * d + i);
      // in f32, as the state has it: the result does not depend on where a sequence is cut
      return *c.in.at<const float>(t, 0, i) * *c.in.at<const float>(t, 2, i);
    };
    for (int64_t t = rows.begin; t < rows.end; ++t) {
      for (int64_t i = 0; i < d; ++i) {
        double sum = 0.0;
        for (int64_t j = 0; j <= n_before; ++j) {
          sum += *c.weight.at<const float>(i, j) * y(t - n_before + j, i);
        }
        put(c.out.at<void>(t), c.out.dtype, i, *c.in.at<const float>(t, 1, i) * sum);
      }
    }
    for (int64_t j = 0; j < n_before; ++j) {
      for (int64_t i = 0; i < d; ++i) {
        put(rows.to, DType::f32, j * d + i, y(rows.end - n_before + j, i));
      }
    }
  }
}

}  // namespace snapkv::ref
