// SPDX-License-Identifier: MIT
// CpuBackend: the processor's features, the thread count, and the kernels of this folder.
#include "backend/cpu/cpu_backend.h"

#include <fmt/core.h>
#include <omp.h>
#include <sched.h>

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/many_rows/tile_product.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/target/thread_governor.h"
#include "backend/cpu/weights/interleaved_weights.h"
#include "backend/host_backend.h"
#include "backend/kernels.h"
#include "backend/registry.h"
#include "base/control_group.h"
#include "base/error.h"
#include "base/log.h"
#include "snapkv/limits.h"

namespace snapkv::cpu {
namespace {

constexpr const char* kName = "cpu";

CpuContext make_context(int n_threads, Compute compute) {
  CpuContext ctx;
  ctx.n_threads = n_threads > 0 ? n_threads : cpu_threads();
  ctx.native_bf16 = has(CpuTarget::avx512_bf16);
  const bool bf16 = compute == Compute::bf16 ||
                    (compute == Compute::automatic && cpu_compute_dtype() == DType::bf16);
  ctx.compute = bf16 ? DType::bf16 : DType::f32;
  ctx.rounds_activations = compute != Compute::f32;
  ctx.byte_products = byte_products(compute);
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

  // for all of the threads, whatever the governor would say now
  size_t rope_workspace(const Tensor& x, std::span<const int32_t> pos,
                        const RopeFrequencies& frequencies) override {
    return cpu::rope_workspace(ctx_, x, pos, frequencies);
  }
  size_t delta_rule_workspace(const DeltaRule& r) override {
    return cpu::delta_rule_workspace(ctx_, r);
  }
  size_t selective_scan_workspace(const SelectiveScan& s) override {
    return cpu::selective_scan_workspace(ctx_, s);
  }
  size_t channel_scan_workspace(const ChannelScan& s) override {
    return cpu::channel_scan_workspace(ctx_, s);
  }
  size_t wkv_workspace(const Wkv& w) override { return cpu::wkv_workspace(ctx_, w); }
  size_t project_workspace(const Tensor& x, std::span<const Projection> projections) override {
    return cpu::project_workspace(ctx_, x, projections);
  }
  size_t project_each_workspace(const Tensor& x, std::span<const Projection> projections) override {
    return cpu::project_each_workspace(ctx_, x, projections);
  }
  size_t pack_workspace(const Tensor& weight, PackedWeight& packed) override {
    return cpu::pack_workspace(ctx_, weight, packed);
  }
  size_t project_packed_workspace(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                                  const Tensor& out, bool accumulate) override {
    return cpu::project_packed_workspace(ctx_, x, weight, bias, out, accumulate);
  }
  size_t project_experts_workspace(const ExpertProducts& p) override {
    return cpu::project_experts_workspace(ctx_, p);
  }
  size_t convert_rows_workspace(const RowConversion& c) override {
    return cpu::convert_rows_workspace(ctx_, c);
  }
  size_t attention_prefill_workspace(const PrefillAttention& a) override {
    return cpu::attention_prefill_workspace(ctx_, a);
  }
  size_t index_scores_workspace(const IndexScores& s) override {
    return cpu::index_scores_workspace(ctx_, s);
  }
  size_t attention_decode_workspace(const DecodeAttention& a) override {
    return cpu::attention_decode_workspace(ctx_, a);
  }
  size_t window_votes_workspace(const WindowVotes& v) override {
    return cpu::window_votes_workspace(ctx_, v);
  }
  size_t top_k_workspace(const Tensor& scores, std::span<const int32_t> n,
                         std::span<const int32_t> k, int n_tail, const Tensor& rows) override {
    return cpu::top_k_workspace(ctx_, scores, n, k, n_tail, rows);
  }
  size_t row_norms_workspace(const RowNorms& r) override {
    return cpu::row_norms_workspace(ctx_, r);
  }
  size_t row_dots_workspace(const Tensor& x, const Tensor& y, std::span<const int32_t> n,
                            const Tensor& out) override {
    return cpu::row_dots_workspace(ctx_, x, y, n, out);
  }
  size_t sum_rows_workspace(const Tensor& x, const Tensor& weights, std::span<const int32_t> n,
                            const Tensor& out) override {
    return cpu::sum_rows_workspace(ctx_, x, weights, n, out);
  }
  size_t chunk_scores_workspace(const ChunkScores& c) override {
    return cpu::chunk_scores_workspace(ctx_, c);
  }
  size_t lag_deviations_workspace(const Tensor& x, std::span<const int32_t> n, int64_t begin,
                                  int64_t lag, const Tensor& out) override {
    return cpu::lag_deviations_workspace(ctx_, x, n, begin, lag, out);
  }
  size_t moments_workspace(const Tensor& x, const Tensor& shift, const Tensor& out) override {
    return cpu::moments_workspace(ctx_, x, shift, out);
  }

  size_t lay_out(const Tensor& weight, DType, PackedWeight& packed) override {
    return cpu::lay_out(ctx_, weight, packed);
  }
  size_t pack_memory(int64_t n, const PackedWeight& weight) override {
    return cpu::pack_memory(ctx_, n, weight);
  }

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
  explicit CpuBackend(const CpuContext& ctx) : interleaved_(ctx.n_threads), ctx_(ctx) {
    prepare_for_forks();
    if (interleaves(ctx_, DType::q4_0)) ctx_.interleaved = &interleaved_;
  }

  std::string_view device() const override { return kName; }
  std::string description() const override {
    return fmt::format("cpu ({}, {} thread{}, {})", cpu_target_description(), ctx_.n_threads,
                       ctx_.n_threads == 1 ? "" : "s", name(ctx_.compute));
  }
  DType compute_dtype() const override { return ctx_.compute; }
  bool rounds_activations() const override { return ctx_.rounds_activations; }
  int n_threads() const override { return ctx_.n_threads; }
  size_t library_bytes(int64_t n_networks) const override { return cpu::library_bytes(n_networks); }
  ArrangedWeights* arranged_weights() override {
    return ctx_.interleaved != nullptr ? &interleaved_ : nullptr;
  }
  ProductTraits products(DType weight) const override { return product_traits(ctx_, weight); }
  bool attends_to_chosen() const override { return true; }
  Kernels* kernels_to_ask() override { return &kernels_; }
  Kernels& kernels() override { return kernels_; }

 private:
  InterleavedWeights interleaved_;
  CpuContext ctx_;
  CpuKernels kernels_{ctx_};
};

std::unique_ptr<Backend> make(const BackendOptions& options) {
  return make_backend(make_context(options.n_threads, options.compute));
}

std::unique_ptr<PlannedDevice> plan(const DeviceTraits& traits) {
  CpuContext ctx;
  ctx.n_threads = traits.n_threads > 0 ? traits.n_threads : cpu_threads();
  ctx.compute = traits.compute;
  ctx.native_bf16 = has(CpuTarget::avx512_bf16);
  ctx.byte_products = byte_products(traits.asked);
  ctx.rounds_activations = traits.asked != Compute::f32;
  ctx.only_measures = true;
  return make_backend(ctx);
}

}  // namespace

std::unique_ptr<Backend> make_backend(const CpuContext& ctx) {
  return std::make_unique<CpuBackend>(ctx);
}

BackendDefinition definition() {
  return {.info = {.name = kName, .help = "this machine's processors"},
          .auto_rank = 1,
          .make = make,
          .plan = plan};
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
