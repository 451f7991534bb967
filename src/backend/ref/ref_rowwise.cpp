// SPDX-License-Identifier: MIT
// Norm, rotation, activation and storing as plain loops. Called by ref_backend.cpp; meanings in
// ops.def.
#include <cmath>
#include <numbers>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

// out[t, i] = x[t, i] / sqrt(mean_i(x[t, i]^2) + eps) * weight[i]
void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1];
  for (int64_t t = 0; t < n; ++t) {
    const std::vector<double> row = get_row(x.at<const void>(t), x.dtype, d);
    const double scale = 1.0 / std::sqrt(dot(row, row) / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) {
      const double w = get(weight.data, weight.dtype, i);
      put(out.at<void>(t), out.dtype, i, row[static_cast<size_t>(i)] * scale * w);
    }
  }
}

// The pair (a, b) of position p turns by angle p * inv_freq[i]:
//   a' = a cos - b sin,  b' = a sin + b cos
void rope(const Tensor& x, std::span<const int32_t> pos, const RopeFrequencies& frequencies) {
  const int64_t n_pairs = static_cast<int64_t>(frequencies.inv_freq.size());
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t h = 0; h < x.shape[1]; ++h) {
      float* row = x.at<float>(t, h);
      for (int64_t i = 0; i < n_pairs; ++i) {
        float& first = row[frequencies.layout == RopeLayout::norm ? 2 * i : i];
        float& second = row[frequencies.layout == RopeLayout::norm ? 2 * i + 1 : i + n_pairs];
        const double angle =
            pos[static_cast<size_t>(t)] * frequencies.inv_freq[static_cast<size_t>(i)];
        const double a = first, b = second;
        first = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
        second = static_cast<float>(a * std::sin(angle) + b * std::cos(angle));
      }
    }
  }
}

namespace {

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1.0 + std::tanh(inner));
    }
  }
  SNAPKV_CHECK(false);
}

}  // namespace

// out = f(x) * factor
void activate(Activation activation, const Tensor& x, const Tensor& factor, const Tensor& out) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t i = 0; i < x.shape[1]; ++i) {
      double value = activated(activation, get(x.at<const void>(t), x.dtype, i));
      if (factor) value *= get(factor.at<const void>(t), factor.dtype, i);
      put(out.at<void>(t), out.dtype, i, value);
    }
  }
}

// dst[h][t, :] = src[t, h, :], rounded to dtype
void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst) {
  const int64_t n = src.shape[0], n_head_kv = src.shape[1], d = src.shape[2];
  for (int64_t h = 0; h < n_head_kv; ++h) {
    for (int64_t t = 0; t < n; ++t) {
      char* out = static_cast<char*>(dst[static_cast<size_t>(h)]) + t * row_bytes(dtype, d);
      put_row(out, dtype, get_row(src.at<const void>(t, h), src.dtype, d));
    }
  }
}

// dst[h][t] = pos[t]
void store_positions(std::span<const int32_t> pos, std::span<int32_t* const> dst) {
  for (int32_t* head : dst) std::copy(pos.begin(), pos.end(), head);
}

}  // namespace snapkv::ref
