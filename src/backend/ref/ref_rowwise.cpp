// SPDX-License-Identifier: MIT
// Norm, rotation, activation and storing as plain loops; ops.def defines them.
#include <cmath>
#include <numbers>

#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

// out[t, i] = x[t, i] / sqrt(mean_i(x[t, i]^2) + eps) * weight[i]
void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1], n_weights = weight.numel() / d;
  for (int64_t t = 0; t < n; ++t) {
    const std::vector<double> row = get_row(x.at<const void>(t), x.dtype, d);
    const double scale = 1.0 / std::sqrt(dot(row, row) / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) {
      const double w = get(weight.data, weight.dtype, t % n_weights * d + i);
      put(out.at<void>(t), out.dtype, i, row[i] * scale * w);
    }
  }
}

// out[t, i] = (x[t, i] - mean) / sqrt(mean_i((x[t, i] - mean)^2) + eps) * weight[i] + bias[i]
void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                const Tensor& out) {
  const int64_t n = x.shape[0], d = x.shape[1], n_weights = weight.numel() / d;
  for (int64_t t = 0; t < n; ++t) {
    std::vector<double> row = get_row(x.at<const void>(t), x.dtype, d);
    double mean = 0.0;
    for (double v : row) mean += v / static_cast<double>(d);
    for (double& v : row) v -= mean;
    const double scale = 1.0 / std::sqrt(dot(row, row) / static_cast<double>(d) + eps);
    for (int64_t i = 0; i < d; ++i) {
      const double w = get(weight.data, weight.dtype, t % n_weights * d + i);
      const double b = bias ? get(bias.data, bias.dtype, t % (bias.numel() / d) * d + i) : 0.0;
      put(out.at<void>(t), out.dtype, i, row[i] * scale * w + b);
    }
  }
}

// parts[p][t, i] = x[t, begin of the part + i]
void split(const Tensor& x, std::span<const Tensor> parts) {
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    for (int64_t t = 0; t < x.shape[0]; ++t) {
      for (int64_t i = 0; i < part.shape[1]; ++i) {
        put(part.at<void>(t), part.dtype, i, get(x.at<void>(t), x.dtype, begin + i));
      }
    }
    begin += part.shape[1];
  }
}

// out[t, begin of the part + i] = parts[p][t, i]
void join(std::span<const Tensor> parts, const Tensor& out) {
  int64_t begin = 0;
  for (const Tensor& part : parts) {
    for (int64_t t = 0; t < out.shape[0]; ++t) {
      for (int64_t i = 0; i < part.shape[1]; ++i) {
        put(out.at<void>(t), out.dtype, begin + i, get(part.at<void>(t), part.dtype, i));
      }
    }
    begin += part.shape[1];
  }
}

// x[t, i] += factor * y[t, i]
void add(const Tensor& x, const Tensor& y, float factor) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    put(x.data, x.dtype, i,
        get(x.data, x.dtype, i) + static_cast<double>(factor) * get(y.data, y.dtype, i));
  }
}

// x[rows[t], i] += factors[t] * y[t, i]
void add_rows(const Tensor& x, const Tensor& y, std::span<const int32_t> rows,
              std::span<const float> factors) {
  const int64_t d = x.shape[1];
  for (size_t t = 0; t < rows.size(); ++t) {
    for (int64_t i = 0; i < d; ++i) {
      const double term = static_cast<double>(factors[t]) * get(y.data, y.dtype, t * d + i);
      put(x.data, x.dtype, rows[t] * d + i, get(x.data, x.dtype, rows[t] * d + i) + term);
    }
  }
}

// x[t, i] *= factors[t]
void scale(const Tensor& x, std::span<const float> factors) {
  const int64_t d = x.numel() / x.shape[0];
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float factor = factors.size() == 1 ? factors[0] : factors[i / d];
    put(x.data, x.dtype, i, get(x.data, x.dtype, i) * factor);
  }
}

// x[t, i] *= factors[t]
void scale_rows(const Tensor& x, const Tensor& factors) {
  const int64_t d = x.shape[1];
  for (int64_t i = 0; i < x.numel(); ++i) {
    put(x.data, x.dtype, i, get(x.data, x.dtype, i) * get(factors.data, factors.dtype, i / d));
  }
}

// x[t, i] = cap * tanh(x[t, i] / cap)
void softcap(const Tensor& x, float cap) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    put(x.data, x.dtype, i, cap * std::tanh(get(x.data, x.dtype, i) / cap));
  }
}

// x[t, i] = min(max(x[t, i], low), high); what is not a number stays
void clamp(const Tensor& x, float low, float high) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = get(x.data, x.dtype, i);
    if (v > high) put(x.data, x.dtype, i, high);
    if (v < low) put(x.data, x.dtype, i, low);
  }
}

// The pair (a, b) at position p turns by the angle p * inv_freq[i]; m is the magnitude:
//   a' = m (a cos - b sin),  b' = m (a sin + b cos)
void rope(const Tensor& x, std::span<const int32_t> pos, const RopeFrequencies& frequencies) {
  const int64_t n_pairs = std::ssize(frequencies.inv_freq);
  const double m = frequencies.magnitude;
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t h = 0; h < x.shape[1]; ++h) {
      float* row = x.at<float>(t, h);
      for (int64_t i = 0; i < n_pairs; ++i) {
        float& first = row[frequencies.layout == RopeLayout::norm ? 2 * i : i];
        float& second = row[frequencies.layout == RopeLayout::norm ? 2 * i + 1 : i + n_pairs];
        const double angle = pos[t] * frequencies.inv_freq[i];
        const double a = first, b = second;
        first = static_cast<float>(m * (a * std::cos(angle) - b * std::sin(angle)));
        second = static_cast<float>(m * (a * std::sin(angle) + b * std::cos(angle)));
      }
    }
  }
}

namespace {

/// What the first part of a gated network is multiplied with.
double factor_of(Activation activation, double x) {
  if (activation != Activation::clamped_swiglu) return x;
  return 1.0 + std::clamp<double>(x, -kClampedLimit, kClampedLimit);
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return 0.5 * x * (1.0 + std::tanh(inner));
    }
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::clamped_swiglu: {
      const double g = std::min<double>(x, kClampedLimit);
      return g / (1.0 + std::exp(-static_cast<double>(kClampedAlpha) * g));
    }
    case Activation::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Activation::relu_squared:
      return x < 0.0 ? 0.0 : x * x;  // NaN stays
    case Activation::relu:
      return x < 0.0 ? 0.0 : x;
    case Activation::softplus:
      return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::identity:
      return x;
  }
  SNAPKV_CHECK(false);
}

}  // namespace

// out = f(x) * factor
void activate(Activation activation, const Tensor& x, const Tensor& factor, const Tensor& out) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t i = 0; i < x.shape[1]; ++i) {
      double value = activated(activation, get(x.at<const void>(t), x.dtype, i));
      if (factor) {
        value *= factor_of(activation, get(factor.at<const void>(t), factor.dtype, i));
      }
      put(out.at<void>(t), out.dtype, i, value);
    }
  }
}

// out = alpha_p x^2 + beta x, or alpha_n (e^min(x, eps) - 1 - x) + beta x
void xielu(const Tensor& x, float alpha_p, float alpha_n, float beta, float eps,
           const Tensor& out) {
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    for (int64_t i = 0; i < x.shape[1]; ++i) {
      const double v = get(x.at<const void>(t), x.dtype, i);
      const double curve =
          v > 0.0 ? alpha_p * v * v : alpha_n * (std::expm1(std::min<double>(v, eps)) - v);
      put(out.at<void>(t), out.dtype, i, curve + beta * v);
    }
  }
}

// dst[h][t, :] = src[t, h, :], rounded to dtype
void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst) {
  const int64_t n = src.shape[0], n_head_kv = src.shape[1], d = src.shape[2];
  for (int64_t h = 0; h < n_head_kv; ++h) {
    for (int64_t t = 0; t < n; ++t) {
      char* out = static_cast<char*>(dst[h]) + t * row_bytes(dtype, d);
      put_row(out, dtype, get_row(src.at<const void>(t, h), src.dtype, d));
    }
  }
}

// dst[h][t] = pos[t]
void store_positions(std::span<const int32_t> pos, std::span<int32_t* const> dst) {
  for (int32_t* head : dst) std::copy(pos.begin(), pos.end(), head);
}

}  // namespace snapkv::ref
