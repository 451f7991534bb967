// SPDX-License-Identifier: MIT
#include "policy/host_rows.h"

#include "base/check.h"
#include "base/half.h"

namespace snapkv {
namespace {

void append_f32(const char* row, DType dtype, int64_t n, std::vector<float>& out) {
  for (int64_t i = 0; i < n; ++i) {
    switch (dtype) {
      case DType::f32:
        out.push_back(reinterpret_cast<const float*>(row)[i]);
        break;
      case DType::f16:
        out.push_back(to_f32(reinterpret_cast<const f16_t*>(row)[i]));
        break;
      case DType::bf16:
        out.push_back(to_f32(reinterpret_cast<const bf16_t*>(row)[i]));
        break;
      default:
        SNAPKV_CHECK(false);  // no KV dtype
    }
  }
}

}  // namespace

std::vector<float> read_rows(Backend& backend, const Tensor& kv, int64_t h, int64_t begin,
                             int64_t end) {
  const int64_t head_dim = kv.shape[2];
  const size_t bytes = static_cast<size_t>(row_bytes(kv.dtype, head_dim));
  const size_t n = static_cast<size_t>(end - begin);
  std::vector<float> out;
  out.reserve(n * static_cast<size_t>(head_dim));
  std::vector<char> raw(n * bytes);
  if (kv.stride[1] == static_cast<int64_t>(bytes)) {
    backend.download(raw.data(), kv.at<const void>(h, begin), raw.size());
  } else {
    for (size_t i = 0; i < n; ++i) {
      backend.download(raw.data() + i * bytes,
                       kv.at<const void>(h, begin + static_cast<int64_t>(i)), bytes);
    }
  }
  append_f32(raw.data(), kv.dtype, end * head_dim - begin * head_dim, out);
  return out;
}

std::vector<float> read_scores(Backend& backend, const Tensor& scores, int64_t h, int32_t n) {
  std::vector<float> row(static_cast<size_t>(n));
  backend.download(row.data(), scores.at<const void>(h), row.size() * sizeof(float));
  return row;
}

void write_scores(Backend& backend, const Tensor& scores, int64_t h, std::span<const float> row) {
  backend.upload(scores.at<void>(h), row.data(), row.size() * sizeof(float));
}

}  // namespace snapkv
