// SPDX-License-Identifier: MIT
// Two parallel regions: one for experts' first matrices, whose tasks are rows of one matrix, and
// one for their last matrices, whose tasks are columns of the output of all experts: so no two
// threads add to the same values, and sums are in the order of experts. While a task multiplies, it
// fetches the weights that it reads next.
#include "backend/cpu/products/few_rows/expert_rows.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/products/few_rows/gemv_interleaved.h"
#include "backend/cpu/rows/add_rows.h"
#include "backend/cpu/target/scratch.h"
#include "backend/cpu/weights/interleave.h"
#include "backend/cpu/weights/interleaved_weights.h"
#include "base/check.h"
#include "base/half.h"

namespace snapkv::cpu {
namespace {

/// Output rows of a task.
constexpr int64_t kTaskRows = 64;
static_assert(kTaskRows % kInterleavedRows == 0);

constexpr int64_t count_units(int64_t n_in) { return (n_in + kGemvUnit - 1) / kGemvUnit; }
constexpr int64_t count_tasks(int64_t n_out) { return (n_out + kTaskRows - 1) / kTaskRows; }

const GemvKernel& kernel_of(const CpuContext& ctx) {
  SNAPKV_CHECK(has_expert_rows(ctx));
#if defined(__x86_64__)
  return *gemv_interleaved(ctx.byte_products);
#else
  return gemv_f32();
#endif
}

/// Memory for kInterleavedRows rows of any matrix.
int64_t bytes_of_16_rows(const ExpertProducts& p) {
  int64_t most = 0;
  for (const Expert& e : p.experts) {
    for (const Tensor& w : {e.gate, e.up, e.down}) {
      if (w) most = std::max(most, row_bytes(w.dtype, w.n_cols()));
    }
  }
  return (kInterleavedRows * most + 63) / 64 * 64;
}

}  // namespace

bool has_expert_rows([[maybe_unused]] const CpuContext& ctx) {
#if defined(__x86_64__)
  return ctx.rounds_activations && ctx.byte_products == ByteProducts::avx512_vnni;
#else
  return false;
#endif
}

void activate_experts(const CpuContext& ctx, const ExpertProducts& p, int64_t n) {
  const ExpertMemory& m = p.memory;
  const Tensor up = m.up.slice(0, n), act = m.act.slice(0, n);
  if (p.experts[0].gate) {
    const Tensor gate = m.gate.slice(0, n);
    if (p.limits) {
      clamp(ctx, gate, -std::numeric_limits<float>::infinity(), p.limits.gate);
      clamp(ctx, up, -p.limits.up, p.limits.up);
    }
    activate(ctx, p.activation, gate, up, act);
  } else {
    activate(ctx, p.activation, up, {}, act);
  }
}

size_t ExpertRows::workspace(const CpuContext& ctx, const ExpertProducts& p) {
  Memory memory;
  return cut_memory(ctx, p, nullptr, memory);
}

size_t ExpertRows::cut_memory(const CpuContext& ctx, const ExpertProducts& p, char* begin,
                              Memory& m) {
  const int64_t n_embd = p.x.shape[1], n_ff = p.memory.up.shape[1];
  const int64_t unit_bytes = static_cast<int64_t>(kernel_of(ctx).unit_bytes);
  ScratchCutter cutter(begin);
  m.x = cutter.take<char>(p.memory.up.shape[0] * count_units(std::max(n_embd, n_ff)) * unit_bytes);
  m.weights = cutter.take<char>(ctx.n_threads * bytes_of_16_rows(p));
  m.sums = cutter.take<float>(ctx.n_threads * kMostExpertRows * kTaskRows);
  m.shares = cutter.take<ChunkShares::Share>(ctx.n_threads);
  return cutter.used();
}

ExpertRows::ExpertRows(const CpuContext& ctx, const ExpertProducts& p,
                       std::span<const ExpertPart> experts, const ChosenRows& rows)
    : ctx_(ctx),
      p_(p),
      experts_(experts),
      rows_(rows),
      kernel_(kernel_of(ctx)),
      n_matrices_(p.experts[0].gate ? 2 : 1),
      tasks_of_input_(count_tasks(p.memory.up.shape[1])),
      weight_bytes_(bytes_of_16_rows(p)) {
  cut_memory(ctx, p, scratch(workspace(ctx, p)), memory_);
}

/// Prepares row `row`, whose values are those of row `x_row` of x.
void ExpertRows::prepare(int64_t row, const Tensor& x, int64_t x_row) const {
  const int64_t n_in = x.shape[1];
  const int64_t n_units = count_units(n_in), bytes = static_cast<int64_t>(kernel_.unit_bytes);
  char* unit = memory_.x + row * n_units * bytes;
  for (int64_t begin = 0; begin < n_in; begin += kGemvUnit, unit += bytes) {
    const int64_t n = std::min(kGemvUnit, n_in - begin);
    if (x.dtype == DType::f32) {
      kernel_.prepare(x.at<const float>(x_row) + begin, n, unit);
      continue;
    }
    const bf16_t* const rounded = x.at<const bf16_t>(x_row) + begin;
    std::array<float, kGemvUnit> values;
    for (int64_t i = 0; i < n; ++i) values[i] = to_f32(rounded[i]);
    kernel_.prepare(values.data(), n, unit);
  }
}

ExpertRows::Rows ExpertRows::rows_of(const Tensor& w, int64_t first) const {
  const char* copy = ctx_.interleaved != nullptr ? ctx_.interleaved->find(w) : nullptr;
  const char* begin = copy != nullptr ? copy : static_cast<const char*>(w.data);
  return {.w = &w,
          .at = begin + first * w.stride[0],
          .interleaved = copy != nullptr,
          .first = first,
          .end = std::min(first + kTaskRows, w.shape[0])};
}

/// The part's rows times rows of weights: [rows, kTaskRows] of this thread. Fetches `next`, if it
/// is something.
float* ExpertRows::multiply([[maybe_unused]] const ExpertPart& part,
                            [[maybe_unused]] const Rows& rows,
                            [[maybe_unused]] const Rows& next) const {
#if defined(__x86_64__)
  const Tensor& w = *rows.w;
  const GemvFn multiply_kept = gemv_interleaved_before(ctx_.byte_products, w.dtype);
  const GemvFn multiply_file = kernel_.function(w.dtype);
  const KeepingGemvFn multiply_and_keep = gemv_interleaved_keeping_vnni(w.dtype);
  const int64_t n_in = w.n_cols();
  const int64_t x_bytes = count_units(n_in) * static_cast<int64_t>(kernel_.unit_bytes);
  const int thread = omp_get_thread_num();
  float* const sums = memory_.sums + thread * kMostExpertRows * kTaskRows;
  KeepingCall call;
  call.w_stride = w.stride[0];
  call.n_in = n_in;
  call.x_stride = x_bytes;
  call.sums_stride = kTaskRows;
  call.copy = memory_.weights + thread * weight_bytes_;
  const char* at = rows.at;
  for (int64_t row = rows.first; row < rows.end; row += kInterleavedRows) {
    const char* const after = at + kInterleavedRows * w.stride[0];
    call.n_rows = std::min(kInterleavedRows, rows.end - row);
    call.w = at;
    call.fetch = next.at != nullptr ? next.at + (at - rows.at) : nullptr;
    bool kept = rows.interleaved;
    for (int64_t t = part.begin; t < part.end; t += kGemvMaxRows) {
      call.x = memory_.x + t * x_bytes;
      call.n = static_cast<int>(std::min<int64_t>(kGemvMaxRows, part.end - t));
      call.sums = sums + (t - part.begin) * kTaskRows + row - rows.first;
      if (kept) {
        multiply_kept(call);
      } else if (call.n_rows < kInterleavedRows || part.end - t <= kGemvMaxRows) {
        multiply_file(call);
      } else {
        multiply_and_keep(call);
        call.w = call.copy;
        kept = true;
      }
      call.fetch = nullptr;
    }
    at = after;
  }
  return sums;
#else
  SNAPKV_CHECK(has_expert_rows(ctx_));
  return nullptr;
#endif
}

/// The weights of a task: of one expert after another its gate's rows, then its up matrix's.
ExpertRows::Rows ExpertRows::input_rows(int64_t task) const {
  const int64_t of_expert = tasks_of_input_ * n_matrices_, at = task % of_expert;
  const Expert& e = *experts_[task / of_expert].expert;
  return rows_of(n_matrices_ == 2 && at < tasks_of_input_ ? e.gate : e.up,
                 at % tasks_of_input_ * kTaskRows);
}

/// `next`: the task that fetches weights are for; -1: none.
void ExpertRows::multiply_input(int64_t task, int64_t next) const {
  const ExpertPart& part = experts_[task / (tasks_of_input_ * n_matrices_)];
  const Rows mine = input_rows(task);
  const bool is_gate = mine.w == &part.expert->gate;
  const Tensor& bias = is_gate ? part.expert->gate_bias : part.expert->up_bias;
  const Tensor& out = is_gate ? p_.memory.gate : p_.memory.up;
  const float* sums = multiply(part, mine, next >= 0 ? input_rows(next) : Rows());
  const int64_t n = mine.end - mine.first;
  for (int64_t row = part.begin; row < part.end; ++row, sums += kTaskRows) {
    float* const to = out.at<float>(row) + mine.first;
    std::copy_n(sums, n, to);
    if (!bias) continue;
    const float* const b = static_cast<const float*>(bias.data) + mine.first;
    for (int64_t i = 0; i < n; ++i) to[i] += b[i];
  }
}

/// Columns of the output. `next`: as above.
void ExpertRows::multiply_output(int64_t task, int64_t next) const {
  const int64_t first = task * kTaskRows;
  for (size_t i = 0; i < experts_.size(); ++i) {
    const ExpertPart& part = experts_[i];
    const Rows mine = rows_of(part.expert->down, first);
    Rows fetched;
    if (i + 1 < experts_.size()) {
      fetched = rows_of(experts_[i + 1].expert->down, first);
    } else if (next >= 0) {
      fetched = rows_of(experts_[0].expert->down, next * kTaskRows);
    }
    float* const sums = multiply(part, mine, fetched);
    const int64_t n = part.end - part.begin, n_columns = mine.end - first;
    if (const Tensor& bias = part.expert->down_bias) {
      const float* const b = static_cast<const float*>(bias.data) + first;
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n_columns; ++c) sums[r * kTaskRows + c] += b[c];
      }
    }
    Tensor columns = p_.out, given(sums, DType::f32, {n, kTaskRows});
    columns.data = p_.out.at<float>(0) + first;
    columns.shape[1] = given.shape[1] = n_columns;
    add_rows_alone(columns, given, rows_.tokens.subspan(part.begin, n),
                   rows_.factors.subspan(part.begin, n));
  }
}

void ExpertRows::run() {
  const int64_t n = std::ssize(rows_.tokens), n_embd = p_.x.shape[1];
  ChunkShares inputs(memory_.shares, ctx_.n_threads,
                     std::ssize(experts_) * n_matrices_ * tasks_of_input_);
#pragma omp parallel num_threads(ctx_.n_threads)
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < n; ++row) prepare(row, p_.x, rows_.tokens[row]);
    const int thread = omp_get_thread_num();
    for (int64_t t; (t = inputs.take(thread)) >= 0;) multiply_input(t, inputs.peek(thread));
  }
  activate_experts(ctx_, p_, n);
  ChunkShares outputs(memory_.shares, ctx_.n_threads, count_tasks(n_embd));
#pragma omp parallel num_threads(ctx_.n_threads)
  {
#pragma omp for schedule(static)
    for (int64_t row = 0; row < n; ++row) prepare(row, p_.memory.act, row);
    const int thread = omp_get_thread_num();
    for (int64_t t; (t = outputs.take(thread)) >= 0;) multiply_output(t, outputs.peek(thread));
  }
}

}  // namespace snapkv::cpu
