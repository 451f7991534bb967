// SPDX-License-Identifier: MIT
// CpuBackend: the processor's features, the thread count, and the kernels of this folder.
#include "backend/cpu/cpu_backend.h"

#include <fmt/core.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_target.h"
#include "backend/cpu/thread_governor.h"
#include "backend/host_backend.h"
#include "backend/kernels.h"
#include "base/control_group.h"
#include "base/error.h"
#include "base/log.h"
#include "snapkv/limits.h"

namespace snapkv::cpu {
namespace {

CpuContext make_context(int n_threads, Compute compute) {
  CpuContext ctx;
  ctx.n_threads = n_threads > 0 ? n_threads : cpu_threads();
  ctx.native_bf16 = has(CpuTarget::avx512_bf16);
  const bool bf16 = compute == Compute::bf16 ||
                    (compute == Compute::automatic && cpu_compute_dtype() == DType::bf16);
  ctx.compute = bf16 ? DType::bf16 : DType::f32;
  ctx.rounds_activations = compute != Compute::f32;
  if (compute == Compute::automatic) ctx.byte_products = cpu_byte_products();
  if (compute == Compute::f32) ctx.byte_products = ByteProducts::none;
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

#define SNAPKV_OP(name, parameters, names) \
  void name parameters override { cpu::name(context(), SNAPKV_UNPACK names); }
#include "backend/ops.def"

 private:
  CpuContext context() const {
    CpuContext ctx = ctx_;
    ctx.n_threads = threads_for_op(ctx.n_threads);
    return ctx;
  }
  const CpuContext& ctx_;
};

class CpuBackend final : public HostBackend {
 public:
  explicit CpuBackend(const CpuContext& ctx) : ctx_(ctx) {}

  Device device() const override { return Device::cpu; }
  std::string description() const override {
    return fmt::format("cpu ({}, {} thread{}, {})", cpu_target_description(), ctx_.n_threads,
                       ctx_.n_threads == 1 ? "" : "s", name(ctx_.compute));
  }
  DType compute_dtype() const override { return ctx_.compute; }
  bool rounds_activations() const override { return ctx_.rounds_activations; }
  ByteProducts byte_products() const override { return ctx_.byte_products; }
  int n_threads() const override { return ctx_.n_threads; }
  Kernels& kernels() override { return kernels_; }

 private:
  const CpuContext ctx_;
  CpuKernels kernels_{ctx_};
};

}  // namespace

std::unique_ptr<Backend> make_backend(int n_threads, Compute compute) {
  return make_backend(make_context(n_threads, compute));
}

std::unique_ptr<Backend> make_backend(const CpuContext& ctx) {
  return std::make_unique<CpuBackend>(ctx);
}

}  // namespace snapkv::cpu

namespace snapkv {

int cpu_threads() {
  cpu_set_t set;
  const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
  const int processors = known ? CPU_COUNT(&set) : omp_get_num_procs();
  return std::clamp(processor_quota().value_or(processors), 1, std::min(processors, kMostThreads));
}

DType cpu_compute_dtype() {
  const bool bf16 = cpu::has(cpu::CpuTarget::avx512_bf16) && cpu::multiplies_bf16();
  return bf16 ? DType::bf16 : DType::f32;
}

}  // namespace snapkv
