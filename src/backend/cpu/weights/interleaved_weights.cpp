// SPDX-License-Identifier: MIT
#include "backend/cpu/weights/interleaved_weights.h"

#include <algorithm>
#include <mutex>

#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/weights/interleave.h"
#include "base/check.h"
#include "base/error.h"

namespace snapkv::cpu {
namespace {

InterleaveFn interleave_function([[maybe_unused]] DType weight) {
#if defined(__x86_64__)
  if (has(CpuTarget::avx512_vnni)) return interleave_avx512(weight);
  if (has(CpuTarget::avx2)) return interleave_avx2(weight);
#endif
  return nullptr;
}

/// Rows of all matrices of a weight.
int64_t count_rows(const Tensor& weight) { return weight.numel() / weight.n_cols(); }

size_t bytes_of(const Tensor& weight) {
  return static_cast<size_t>(count_rows(weight) * row_bytes(weight.dtype, weight.n_cols()));
}
/// Of memory; each copy begins at a cache line.
size_t place_bytes(const Tensor& weight) {
  return (bytes_of(weight) + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

}  // namespace

void interleave_rows(const Tensor& weight, int64_t begin, int64_t end, char* copy, int n_threads) {
  const InterleaveFn interleave = interleave_function(weight.dtype);
  const int64_t n_in = weight.n_cols(), stride = row_bytes(weight.dtype, n_in);
  const int64_t unit_bytes = row_bytes(weight.dtype, kGemvUnit);
  const auto* rows = static_cast<const char*>(weight.data);
#pragma omp parallel for num_threads(n_threads) schedule(static)
  for (int64_t row = begin; row < end; row += kInterleavedRows) {
    for (int64_t k = 0; k < n_in; k += kGemvUnit) {
      const int64_t u = k / kGemvUnit;
      interleave(rows + row * stride + u * unit_bytes, stride, std::min(kGemvUnit, n_in - k),
                 copy + row * stride + u * kInterleavedRows * unit_bytes);
    }
  }
}

bool interleaves([[maybe_unused]] const CpuContext& ctx, [[maybe_unused]] DType weight) {
#if defined(__x86_64__)
  // by the products, which may be others than the processor's best: 256 bits have fewer types
  const bool has_512 = ctx.byte_products == ByteProducts::avx512_vnni;
  const bool has_256 =
      ctx.byte_products == ByteProducts::avx_vnni || ctx.byte_products == ByteProducts::avx2;
  if (!ctx.rounds_activations || !(has_512 || has_256)) return false;
  return (has_512 ? interleave_avx512(weight) : interleave_avx2(weight)) != nullptr;
#else
  return false;
#endif
}

bool InterleavedWeights::takes(const Tensor& weight) const {
  return weight.rank >= 2 && weight.shape[weight.rank - 2] % kInterleavedRows == 0 &&
         interleave_function(weight.dtype) != nullptr;
}

bool InterleavedWeights::reserve(std::span<const Tensor> weights) {
  size_t bytes = 0;
  for (const Tensor& w : weights) bytes += place_bytes(w);
  try {
    memory_ = Buffer::host(bytes, "weights in huge pages");
  } catch (const Error&) {
    return false;
  }
  return true;
}

size_t InterleavedWeights::copy_next(const Tensor& weight, size_t max_bytes) {
  const int64_t n_rows = count_rows(weight), stride = row_bytes(weight.dtype, weight.n_cols());
  SNAPKV_CHECK(takes(weight) && used_ + place_bytes(weight) <= memory_.bytes());
  char* const copy = static_cast<char*>(memory_.data()) + used_;
  const int64_t n = static_cast<int64_t>(max_bytes) / (stride * kInterleavedRows);
  const int64_t end = std::min(n_rows, n_copied_ + std::max<int64_t>(n, 1) * kInterleavedRows);
  interleave_rows(weight, n_copied_, end, copy, n_threads_);
  n_copied_ = end;
  if (end < n_rows) return static_cast<size_t>((n_rows - end) * stride);
  const auto* begin = static_cast<const char*>(weight.data);
  const std::unique_lock lock(mutex_);
  copies_[begin] = {begin + bytes_of(weight), copy};
  used_ += place_bytes(weight);
  n_copied_ = 0;
  return 0;
}

const char* InterleavedWeights::find(const Tensor& matrix) const {
  const auto* begin = static_cast<const char*>(matrix.data);
  const std::shared_lock lock(mutex_);
  const auto after = copies_.upper_bound(begin);
  if (after == copies_.begin()) return nullptr;
  const auto& [first, copy] = *std::prev(after);
  const int64_t stride = row_bytes(matrix.dtype, matrix.n_cols());
  const bool fits = begin < copy.end && matrix.stride[0] == stride &&
                    (begin - first) % (stride * kInterleavedRows) == 0 &&
                    matrix.shape[0] % kInterleavedRows == 0;
  return fits ? copy.data + (begin - first) : nullptr;
}

}  // namespace snapkv::cpu
