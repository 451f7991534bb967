// SPDX-License-Identifier: MIT
// ExpertRows: the networks of experts with some rows each, whose weights take as long to unpack as
// to multiply. 16 rows of weights are interleaved once for all rows of an expert, and threads share
// the weights of many experts, so that they seldom wait for each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/cpu_context.h"
#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/target/chunk_shares.h"
#include "backend/ops.h"

namespace snapkv::cpu {

/// Most rows of an expert that are computed this way.
inline constexpr int64_t kMostExpertRows = 64;

/// An expert and its rows, [begin, end) of those that are computed together.
struct ExpertPart {
  const Expert* expert = nullptr;
  int64_t begin = 0, end = 0;
};

/// The rows that are computed together: their tokens, and the factors of what experts give.
struct ChosenRows {
  std::span<const int32_t> tokens;
  std::span<const float> factors;
};

/// Whether there are kernels for these products.
bool has_expert_rows(const CpuContext& ctx);

/// p.memory.act of its first n rows from gate and up.
void activate_experts(const CpuContext& ctx, const ExpertProducts& p, int64_t n);

class ExpertRows {
 public:
  /// Bytes of scratch memory for as many rows as p.memory has.
  static size_t workspace(const CpuContext& ctx, const ExpertProducts& p);

  /// Adds what experts give to p.out, one after the other. All weights are interleaved types
  /// (interleaves()), and p.memory has as many rows.
  ExpertRows(const CpuContext& ctx, const ExpertProducts& p, std::span<const ExpertPart> experts,
             const ChosenRows& rows);
  void run();

 private:
  /// Pieces of the scratch memory.
  struct Memory {
    char* x;        // [m, n_units of the wider input]: prepared rows
    char* weights;  // [n_threads, kInterleavedRows rows of weights]
    float* sums;    // [n_threads, kMostExpertRows, kTaskRows]
    ChunkShares::Share* shares;
  };
  /// Output rows [first, end) of a matrix.
  struct Rows {
    const Tensor* w = nullptr;
    const char* at = nullptr;  // the first row
    bool interleaved = false;
    int64_t first = 0, end = 0;
  };

  static size_t cut_memory(const CpuContext& ctx, const ExpertProducts& p, char* begin, Memory& m);
  void prepare(int64_t row, const Tensor& x, int64_t x_row) const;
  Rows rows_of(const Tensor& w, int64_t first) const;
  Rows input_rows(int64_t task) const;
  void multiply_input(int64_t task, int64_t next) const;
  void multiply_output(int64_t task, int64_t next) const;
  float* multiply(const ExpertPart& part, const Rows& rows, const Rows& next) const;

  const CpuContext& ctx_;
  const ExpertProducts& p_;
  const std::span<const ExpertPart> experts_;
  const ChosenRows rows_;
  const GemvKernel& kernel_;
  const int64_t n_matrices_;      // that experts begin with: 2 if they have gates, else 1
  const int64_t tasks_of_input_;  // of each of these
  [[maybe_unused]] const int64_t weight_bytes_;  // of a thread's Memory::weights
  Memory memory_{};
};

}  // namespace snapkv::cpu
