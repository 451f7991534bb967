// SPDX-License-Identifier: MIT
// The ops of models with several residual streams as plain loops; ops.def defines them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

// x[t, i] = max(x[t, i] - mean - deviations * deviation, 0)
void keep_peaks(const Tensor& x, float deviations) {
  const int64_t d = x.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    std::vector<double> row = get_row(x.at<const void>(t), x.dtype, d);
    double mean = 0.0;
    for (const double v : row) mean += v / static_cast<double>(d);
    for (double& v : row) v -= mean;
    const double cut = deviations * std::sqrt(dot(row, row) / static_cast<double>(d));
    for (int64_t i = 0; i < d; ++i) {
      const double above = row[i] - cut;
      put(x.at<void>(t), x.dtype, i, above < 0.0 ? 0.0 : above);  // NaN stays
    }
  }
}

// out[t, c] = x[t, stream, c] * factors[c]
void take_stream(const Tensor& x, int64_t stream, const Tensor& factors, const Tensor& out) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t c = 0; c < x.shape[2]; ++c) {
      const double factor = factors ? get(factors.data, factors.dtype, c) : 1.0;
      put(out.at<void>(t), out.dtype, c, get(x.at<const void>(t, stream), x.dtype, c) * factor);
    }
  }
}

// x[t, i, c] += sum_j coefficients[t, i * k + j] * x[t, j, c]
void mix_streams(const Tensor& x, const Tensor& coefficients) {
  const int64_t k = x.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t c = 0; c < x.shape[2]; ++c) {
      std::vector<double> before(k);
      for (int64_t j = 0; j < k; ++j) before[j] = get(x.at<const void>(t, j), x.dtype, c);
      for (int64_t i = 0; i < k; ++i) {
        double sum = before[i];
        for (int64_t j = 0; j < k; ++j) {
          sum += get(coefficients.at<const void>(t), coefficients.dtype, i * k + j) * before[j];
        }
        put(x.at<void>(t, i), x.dtype, c, sum);
      }
    }
  }
}

// x[t, i, c] += factors[t, i] * y[t, c]
void add_to_streams(const Tensor& x, const Tensor& y, const Tensor& factors, int64_t first) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t i = first; i < x.shape[1]; ++i) {
      const double factor = factors ? get(factors.at<const void>(t), factors.dtype, i) : 1.0;
      for (int64_t c = 0; c < x.shape[2]; ++c) {
        put(x.at<void>(t, i), x.dtype, c,
            get(x.at<const void>(t, i), x.dtype, c) +
                factor * get(y.at<const void>(t), y.dtype, c));
      }
    }
  }
}

// x[t, i] *= sqrt(mean_i(like[t, i]^2) / max(mean_i(x[t, i]^2), least))
void match_norms(const Tensor& x, const Tensor& like) {
  const int64_t d = x.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    const std::vector<double> row = get_row(x.at<const void>(t), x.dtype, d);
    const std::vector<double> other = get_row(like.at<const void>(t), like.dtype, d);
    const double mean = dot(row, row) / static_cast<double>(d);
    const double wanted = dot(other, other) / static_cast<double>(d);
    const double factor = std::sqrt(wanted / std::max<double>(mean, kLeastMeanSquare));
    for (int64_t i = 0; i < d; ++i) put(x.at<void>(t), x.dtype, i, row[i] * factor);
  }
}

}  // namespace snapkv::ref
