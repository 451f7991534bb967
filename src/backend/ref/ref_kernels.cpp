// SPDX-License-Identifier: MIT
// RefKernels: one forwarding line per op. Called by Backend::make.
#include "backend/ref/ref_kernels.h"

#include "backend/ref/ref_ops.h"

namespace snapkv::ref {
namespace {

class RefKernels final : public Kernels {
 public:
  std::string description() const override { return "ref (plain loops, 1 thread, f32)"; }
  DType compute_dtype() const override { return DType::f32; }
  int n_threads() const override { return 1; }

  void embed(const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) override {
    ref::embed(weight, ids, out);
  }
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    ref::rms_norm(x, weight, eps, out);
  }
  void project(const Tensor& x, std::span<const Projection> projections) override {
    for (const Projection& p : projections) ref::project(x, p);
  }
  void pack(const Tensor& weight, PackedWeight& packed) override { ref::pack(weight, packed); }
  void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                      const Tensor& out, bool accumulate) override {
    ref::project_packed(x, weight, bias, out, accumulate);
  }
  void rope(const Tensor& x, std::span<const int32_t> pos,
            const RopeFrequencies& frequencies) override {
    ref::rope(x, pos, frequencies);
  }
  void swiglu(const Tensor& gate, const Tensor& up, const Tensor& out) override {
    ref::swiglu(gate, up, out);
  }
  void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst) override {
    ref::store_rows(src, dtype, dst);
  }
  void attention_prefill(const PrefillAttention& a) override { ref::attention_prefill(a); }
  void attention_decode(const DecodeAttention& a) override { ref::attention_decode(a); }
  void window_votes(const WindowVotes& w) override { ref::window_votes(w); }
  void pool(const Tensor& scores, std::span<const int32_t> n, int kernel_size, Pooling pooling,
            const Tensor& out) override {
    ref::pool(scores, n, kernel_size, pooling, out);
  }
  void top_k(const Tensor& scores, std::span<const int32_t> n, std::span<const int32_t> k,
             int n_tail, const Tensor& rows) override {
    ref::top_k(scores, n, k, n_tail, rows);
  }
  void gather_rows(const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                   std::span<void* const> dst) override {
    ref::gather_rows(src, rows, n, dst);
  }
  void convert_rows(const RowConversion& c) override { ref::convert_rows(c); }
};

}  // namespace

std::unique_ptr<Kernels> make_kernels() { return std::make_unique<RefKernels>(); }

}  // namespace snapkv::ref
