// SPDX-License-Identifier: MIT
// CpuKernels: the processor's features, the thread count, and one forwarding line per op.
#include "backend/cpu/cpu_kernels.h"

#include <fmt/core.h>
#include <omp.h>
#include <sched.h>

#include "backend/cpu/attention.h"
#include "backend/cpu/cpu_context.h"
#include "backend/cpu/cpu_target.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/rowwise.h"
#include "backend/cpu/select.h"
#include "base/error.h"
#include "base/log.h"

namespace snapkv::cpu {
namespace {

int available_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return omp_get_num_procs();
}

CpuContext make_context(int n_threads, Compute compute) {
  CpuContext ctx;
  ctx.n_threads = n_threads > 0 ? n_threads : available_threads();
  ctx.native_bf16 = has(CpuTarget::avx512_bf16);
  const bool bf16 = compute == Compute::bf16 ||
                    (compute == Compute::automatic && cpu_compute_dtype() == DType::bf16);
  ctx.compute = bf16 ? DType::bf16 : DType::f32;
  if (bf16 && !multiplies_bf16()) {
    fail(ErrorCode::kUsage, "bf16 products need AVX-512, and there is {} only; use f32",
         cpu_target_description());
  }
  if (bf16 && !ctx.native_bf16) {
    log_warn("bf16 products were asked for; {} has none, so they are emulated",
             cpu_target_description());
  }
  return ctx;
}

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const CpuContext& ctx) : ctx_(ctx) {}

  std::string description() const override {
    return fmt::format("cpu ({}, {} thread{}, {})", cpu_target_description(), ctx_.n_threads,
                       ctx_.n_threads == 1 ? "" : "s", name(ctx_.compute));
  }
  DType compute_dtype() const override { return ctx_.compute; }
  int n_threads() const override { return ctx_.n_threads; }

  void embed(const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) override {
    cpu::embed(ctx_, weight, ids, out);
  }
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    cpu::rms_norm(ctx_, x, weight, eps, out);
  }
  void project(const Tensor& x, std::span<const Projection> projections) override {
    cpu::project(ctx_, x, projections);
  }
  void pack(const Tensor& weight, PackedWeight& packed) override {
    cpu::pack(ctx_, weight, packed);
  }
  void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                      const Tensor& out, bool accumulate) override {
    cpu::project_packed(ctx_, x, weight, bias, out, accumulate);
  }
  void rope(const Tensor& x, std::span<const int32_t> pos,
            const RopeFrequencies& frequencies) override {
    cpu::rope(ctx_, x, pos, frequencies);
  }
  void swiglu(const Tensor& gate, const Tensor& up, const Tensor& out) override {
    cpu::swiglu(ctx_, gate, up, out);
  }
  void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst) override {
    cpu::store_rows(ctx_, src, dtype, dst);
  }
  void attention_prefill(const PrefillAttention& a) override { cpu::attention_prefill(ctx_, a); }
  void attention_decode(const DecodeAttention& a) override { cpu::attention_decode(ctx_, a); }
  void window_votes(const WindowVotes& w) override { cpu::window_votes(ctx_, w); }
  void pool(const Tensor& scores, std::span<const int32_t> n, int kernel_size, Pooling pooling,
            const Tensor& out) override {
    cpu::pool(ctx_, scores, n, kernel_size, pooling, out);
  }
  void top_k(const Tensor& scores, std::span<const int32_t> n, std::span<const int32_t> k,
             int n_tail, const Tensor& rows) override {
    cpu::top_k(ctx_, scores, n, k, n_tail, rows);
  }
  void gather_rows(const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                   std::span<void* const> dst) override {
    cpu::gather_rows(ctx_, src, rows, n, dst);
  }
  void convert_rows(const RowConversion& c) override { cpu::convert_rows(ctx_, c); }

 private:
  CpuContext ctx_;
};

}  // namespace

std::unique_ptr<Kernels> make_kernels(int n_threads, Compute compute) {
  return std::make_unique<CpuKernels>(make_context(n_threads, compute));
}

}  // namespace snapkv::cpu

namespace snapkv {

DType cpu_compute_dtype() {
  const bool bf16 = cpu::has(cpu::CpuTarget::avx512_bf16) && cpu::multiplies_bf16();
  return bf16 ? DType::bf16 : DType::f32;
}

}  // namespace snapkv
