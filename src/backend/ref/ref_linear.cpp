// SPDX-License-Identifier: MIT
// Embedding and matrix products as plain loops; ops.def defines them.
#include "backend/ref/ref_access.h"
#include "backend/ref/ref_ops.h"

namespace snapkv::ref {

// out[t, i] = weight[ids[t], i]
void embed(const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) {
  for (int64_t t = 0; t < std::ssize(ids); ++t) {
    const void* row = weight.at<const void>(ids[t]);
    for (int64_t i = 0; i < out.n_cols(); ++i) {
      put(out.at<void>(t), out.dtype, i, get(row, weight.dtype, i));
    }
  }
}

namespace {

// out[t, o] = (out[t, o] if accumulate) + sum_i x[t, i] * w[o, i] + bias[o]
void multiply(const Tensor& x, const Projection& p) {
  const int64_t n = x.shape[0], n_in = x.shape[1], n_out = p.w.shape[0];
  std::vector<std::vector<double>> rows;  // x
  for (int64_t t = 0; t < n; ++t) rows.push_back(get_row(x.at<const void>(t), x.dtype, n_in));
  for (int64_t o = 0; o < n_out; ++o) {
    const std::vector<double> w = get_row(p.w.at<const void>(o), p.w.dtype, n_in);
    for (int64_t t = 0; t < n; ++t) {
      double sum = dot(rows[t], w);
      if (p.bias) sum += get(p.bias.data, p.bias.dtype, o);
      if (p.accumulate) sum += get(p.out.at<const void>(t), p.out.dtype, o);
      put(p.out.at<void>(t), p.out.dtype, o, sum);
    }
  }
}

}  // namespace

void project(const Tensor& x, std::span<const Projection> projections) {
  for (const Projection& p : projections) multiply(x, p);
}

void project_each(const Tensor& x, std::span<const Projection> projections) {
  int64_t begin = 0;
  for (const Projection& p : projections) {
    multiply(x.slice(begin, begin + p.out.shape[0]), p);
    begin += p.out.shape[0];
  }
}

// This backend's layout: [n_out, n_in] f32.
void pack(const Tensor& weight, PackedWeight& packed) {
  const int64_t n_out = weight.shape[0], n_in = weight.shape[1];
  const size_t bytes = n_out * n_in * sizeof(float);
  if (packed.storage.bytes() < bytes) packed.storage = Buffer::host(bytes, "packed weight");
  packed.n_out = n_out;
  packed.n_in = n_in;
  const Tensor out = packed.storage.view(DType::f32, {n_out, n_in});
  for (int64_t o = 0; o < n_out; ++o) {
    for (int64_t i = 0; i < n_in; ++i) {
      put(out.at<void>(o), out.dtype, i, get(weight.at<const void>(o), weight.dtype, i));
    }
  }
}

void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                    const Tensor& out, bool accumulate) {
  const Tensor w = weight.storage.view(DType::f32, {weight.n_out, weight.n_in});
  multiply(x, {.w = w, .bias = bias, .out = out, .accumulate = accumulate});
}

}  // namespace snapkv::ref
