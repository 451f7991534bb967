// SPDX-License-Identifier: MIT
// Gemm as plain loops, in place of cuBLASLt if there is no device.
#include <cstdint>

#include "backend/cuda/gemm.h"
#include "base/half.h"

namespace snapkv::cuda {
namespace {

float get(const Tensor& t, int64_t row, int64_t column) {
  return t.dtype == DType::bf16 ? to_f32(t.at<bf16_t>(row)[column]) : t.at<float>(row)[column];
}

}  // namespace

struct Gemm::Impl {
  Context& context;
};

Gemm::Gemm(Context& context) : impl_(new Impl{context}) {}
Gemm::~Gemm() = default;

void Gemm::run(const Tensor& x, const Tensor& w, const Tensor& out, bool accumulate) {
  if (impl_->context.skips_launches()) return;
  cuda_on_host::submit_work([=] {
    cuda_on_host::run_grid(1, 1, 0, [&] {
      for (int64_t t = 0; t < x.shape[0]; ++t) {
        for (int64_t o = 0; o < w.shape[0]; ++o) {
          double sum = accumulate ? get(out, t, o) : 0.0;
          for (int64_t i = 0; i < w.shape[1]; ++i) {
            sum += static_cast<double>(get(x, t, i)) * get(w, o, i);
          }
          if (out.dtype == DType::bf16) {
            out.at<bf16_t>(t)[o] = to_bf16(static_cast<float>(sum));
          } else {
            out.at<float>(t)[o] = static_cast<float>(sum);
          }
        }
      }
    });
  });
}

}  // namespace snapkv::cuda
