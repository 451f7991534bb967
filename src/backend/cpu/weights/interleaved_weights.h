// SPDX-License-Identifier: MIT
// InterleavedWeights: a model's weights in the order of interleave.h.
#pragma once

#include <map>
#include <shared_mutex>

#include "backend/arranged_weights.h"
#include "backend/cpu/cpu_context.h"
#include "base/buffer.h"

namespace snapkv::cpu {

class InterleavedWeights final : public ArrangedWeights {
 public:
  /// `n_threads` copy.
  explicit InterleavedWeights(int n_threads) : n_threads_(n_threads) {}

  bool takes(const Tensor& weight) const override;
  bool reserve(std::span<const Tensor> weights) override;
  size_t copy_next(const Tensor& weight, size_t max_bytes) override;

  /// The copy of a matrix that is, or is a part of, a weight; nullptr if there is none. Row 16 i
  /// begins where it does in the file.
  const char* find(const Tensor& matrix) const;

 private:
  struct Copy {
    const char* end = nullptr;  // of the weight in the file
    const char* data = nullptr;
  };
  const int n_threads_;
  Buffer memory_;
  size_t used_ = 0;       // bytes of memory_
  int64_t n_copied_ = 0;  // rows of the weight that is being copied
  mutable std::shared_mutex mutex_;
  std::map<const char*, Copy> copies_;  // by the weight's first byte
};

/// Interleaves rows [begin, end) of a weight, multiples of kInterleavedRows, to their places in
/// `copy`, which is as large as the weight.
void interleave_rows(const Tensor& weight, int64_t begin, int64_t end, char* copy, int n_threads);

/// Whether this context's products read interleaved weights of this type.
bool interleaves(const CpuContext& ctx, DType weight);

}  // namespace snapkv::cpu
