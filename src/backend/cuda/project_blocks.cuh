// SPDX-License-Identifier: MIT
// project() for block types.
#pragma once

#include "backend/cuda/dequantize_codebooks.cuh"
#include "backend/cuda/project.cuh"
#include "backend/cuda/ptx.cuh"

namespace snapkv::cuda {

// A part is 32 values: what one lane multiplies at a time. A step is one part for every lane.
constexpr int kPartValues = 32;
constexpr int kStepValues = kWarpSize * kPartValues;

// ---------------------------------------------------------------- activations

// Activations of one column and step, in the order in which a warp reads them: 16 bytes of every
// part, the next 16 of every part, ..., and finally every part's scale d and sum. Rounded to 8 bits
// x = d q, and the sum is that of d q; with `exact`, q is x in f32 and d is 1.
template <bool exact>
constexpr int kPartVectors = exact ? 8 : 2;  // of 16 bytes
template <bool exact>
constexpr int kPreparedBytes = kWarpSize*(16 * kPartVectors<exact> +
                                          static_cast<int>(sizeof(float2)));

constexpr int kPrepareLanes = 8;  // per part
constexpr int kPrepareThreads = kWarpSize * kPrepareLanes;

// One block per step and column.
template <bool exact>
__global__ void __launch_bounds__(kPrepareThreads)
    prepare_kernel(const float* x, int n_in, char* prepared) {
  ptx::let_next_kernel_start();
  ptx::wait_for_earlier_kernels();
  const int part = threadIdx.x / kPrepareLanes, l = threadIdx.x % kPrepareLanes;
  const int k = blockIdx.x * kStepValues + part * kPartValues + 4 * l;
  const float* column = x + static_cast<int64_t>(blockIdx.y) * n_in;
  char* step = prepared +
               (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * kPreparedBytes<exact>;
  float v[4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (k < n_in) v[i] = column[k + i];
  }

  float d = 1.0f, sum;
  if constexpr (exact) {
    reinterpret_cast<float4*>(step)[l * kWarpSize + part] = make_float4(v[0], v[1], v[2], v[3]);
    sum = (v[0] + v[1]) + (v[2] + v[3]);
    for (int bit = 1; bit < kPrepareLanes; bit *= 2) sum += __shfl_xor_sync(kAllLanes, sum, bit);
  } else {
    uint32_t largest = 0;  // bits of |x|: greater than infinity's for a NaN
#pragma unroll
    for (int i = 0; i < 4; ++i) largest = max(largest, __float_as_uint(v[i]) & 0x7fffffffu);
    for (int bit = 1; bit < kPrepareLanes; bit *= 2) {
      largest = max(largest, __shfl_xor_sync(kAllLanes, largest, bit));
    }
    const bool finite = largest < 0x7f800000u;
    const float max_value = __uint_as_float(largest);
    // 0 where 127 / max would be infinite: such small values count as 0.
    const float inverse = finite && max_value > 1e-36f ? 127.0f / max_value : 0.0f;
    d = finite ? (inverse > 0.0f ? max_value / 127.0f : 0.0f) : __uint_as_float(0x7fc00000u);
    uint32_t word = 0;
    int levels = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int level = inverse > 0.0f ? __float2int_rn(v[i] * inverse) : 0;
      word |= (static_cast<uint32_t>(level) & 0xffu) << (8 * i);
      levels += level;
    }
    reinterpret_cast<uint32_t*>(step)[(l / 4 * kWarpSize + part) * 4 + l % 4] = word;
    for (int bit = 1; bit < kPrepareLanes; bit *= 2) {
      levels += __shfl_xor_sync(kAllLanes, levels, bit);
    }
    sum = d * static_cast<float>(levels);
  }
  if (l == 0) {
    reinterpret_cast<float2*>(step + kWarpSize * 16 * kPartVectors<exact>)[part] =
        make_float2(d, sum);
  }
}

// ---------------------------------------------------------------- weights

// Steps of a warp's rows in transit through shared memory, where blocks are read at any alignment.
template <typename F, int n_rows>
struct WeightRing {
  static constexpr int kStepBytes = kStepValues / F::kBlockValues * F::kBlockBytes;
  // Copies use aligned vectors, so up to 15 bytes before a row's data are copied too.
  static constexpr int kVectors = (kStepBytes + (F::kVectors ? 0 : 15) + 15) / 16;
  static constexpr int kSlotBytes = n_rows * kVectors * 16;
  // 8 KiB in flight per warp, with 16 warps per multiprocessor, are four times what 4.3 TB/s need
  // in 1 us.
  static constexpr int kWanted = 8192 / kSlotBytes;
  static constexpr int kSlots = kWanted < 2 ? 2 : kWanted > 6 ? 6 : kWanted;
  static constexpr int kWarpBytes = kSlots * kSlotBytes;
  static constexpr int kSharedBytes = kProjectWarps * kWarpBytes + 16;  // + ShiftReader's word

  char* slots;
  const char* w;
  int64_t row_bytes;
  int n_valid;  // rows
  int n_steps;
  int lane;

  __device__ __forceinline__ const char* at(int r, int step) const {
    return w + r * row_bytes + static_cast<int64_t>(step) * kStepBytes;
  }
  /// Bytes from the aligned address to the data.
  __device__ __forceinline__ int shift(int r, int step) const {
    return F::kVectors ? 0 : static_cast<int>(reinterpret_cast<uintptr_t>(at(r, step)) % 16);
  }
  __device__ __forceinline__ const char* data(int r, int step) const {
    return slots + step % kSlots * kSlotBytes + r * (kVectors * 16) + shift(r, step);
  }

  /// Starts the copies for a step, if it exists, and ends a group in any case.
  __device__ __forceinline__ void request(int step) const {
    if (step < n_steps) {
#pragma unroll
      for (int r = 0; r < n_rows; ++r) {
        if (r < n_valid) request_row(r, step);
      }
    }
    ptx::commit_copies();
  }
  __device__ __forceinline__ void request_row(int r, int step) const {
    const char* from = at(r, step);
    const int64_t left = row_bytes - static_cast<int64_t>(step) * kStepBytes;
    const int bytes = left < kStepBytes ? static_cast<int>(left) : kStepBytes;
    char* to = slots + step % kSlots * kSlotBytes + r * (kVectors * 16);
    const int offset = static_cast<int>(reinterpret_cast<uintptr_t>(from) % 16);
    if (F::kVectors && offset != 0) {  // views at addresses that are not aligned
      for (int i = lane; i < bytes / 2; i += kWarpSize) {
        reinterpret_cast<uint16_t*>(to)[i] = reinterpret_cast<const uint16_t*>(from)[i];
      }
      return;
    }
#pragma unroll
    for (int begin = 0; begin < kVectors; begin += kWarpSize) {
      const int i = begin + lane, n_read = min(offset + bytes - 16 * i, 16);
      if (i < kVectors && n_read > 0)
        ptx::copy_async_16(to + 16 * i, from - offset + 16 * i, n_read);
    }
  }
};

/// A lane's part of a row.
template <typename F>
struct WeightPart {
  static constexpr int kScales = kPartValues / F::kScaleValues;
  static constexpr int kScaleWords = F::kScaleValues / 4;
  using Reader = std::conditional_t<F::kVectors, VectorReader, ShiftReader>;

  uint32_t levels[kPartValues / 4];
  float scales[kScales];
  float mins[kScales];  // if F::kHasMin

  __device__ __forceinline__ void read(const char* block, int first) {
    F::template levels<Reader>(block, first, levels);
#pragma unroll
    for (int i = 0; i < kScales; ++i) {
      const float2 s = F::scale_min(block, first + i * F::kScaleValues);
      scales[i] = s.x;
      mins[i] = s.y;
    }
  }
};

// ---------------------------------------------------------------- products

/// Adds a part's products to its rows' sums. x: the step as prepare_kernel wrote it.
template <bool exact, typename F, int n_rows>
__device__ __forceinline__ void add_products(const WeightPart<F> (&w)[n_rows], const char* x,
                                             int lane, float* sums, int sums_step) {
  using W = WeightPart<F>;
  const float2 d_sum =
      reinterpret_cast<const float2*>(x + kWarpSize * 16 * kPartVectors<exact>)[lane];
  // The factor of minima: d sum(x), of the whole part or of each scale's values.
  constexpr bool kSeveralMins = F::kHasMin && W::kScales > 1;
  float x_sums[W::kScales] = {};
  if constexpr (F::kHasMin && !kSeveralMins) x_sums[0] = d_sum.y;
  float products[n_rows] = {};
  if constexpr (exact) {
    float of_scale[n_rows] = {};
#pragma unroll
    for (int i = 0; i < kPartValues / 4; ++i) {
      const float4 v = reinterpret_cast<const float4*>(x)[i * kWarpSize + lane];
      if constexpr (kSeveralMins) x_sums[i / W::kScaleWords] += (v.x + v.y) + (v.z + v.w);
#pragma unroll
      for (int r = 0; r < n_rows; ++r) {
        float& sum = of_scale[r];
        sum = fmaf(level_at(w[r].levels[i], 0), v.x, sum);
        sum = fmaf(level_at(w[r].levels[i], 1), v.y, sum);
        sum = fmaf(level_at(w[r].levels[i], 2), v.z, sum);
        sum = fmaf(level_at(w[r].levels[i], 3), v.w, sum);
        if ((i + 1) % W::kScaleWords == 0) {
          products[r] = fmaf(w[r].scales[i / W::kScaleWords], sum, products[r]);
          sum = 0.0f;
        }
      }
    }
  } else {
    int levels[kPartValues / 4];
#pragma unroll
    for (int i = 0; i < kPartVectors<false>; ++i) {
      const int4 v = reinterpret_cast<const int4*>(x)[i * kWarpSize + lane];
      levels[4 * i] = v.x;
      levels[4 * i + 1] = v.y;
      levels[4 * i + 2] = v.z;
      levels[4 * i + 3] = v.w;
    }
    if constexpr (kSeveralMins) {
#pragma unroll
      for (int i = 0; i < W::kScales; ++i) {
        int sum = 0;
#pragma unroll
        for (int k = i * W::kScaleWords; k < (i + 1) * W::kScaleWords; ++k) {
          sum = __dp4a(levels[k], 0x01010101, sum);
        }
        x_sums[i] = d_sum.x * static_cast<float>(sum);
      }
    }
#pragma unroll
    for (int r = 0; r < n_rows; ++r) {
#pragma unroll
      for (int i = 0; i < W::kScales; ++i) {
        int sum = 0;
#pragma unroll
        for (int k = i * W::kScaleWords; k < (i + 1) * W::kScaleWords; ++k) {
          sum = __dp4a(static_cast<int>(w[r].levels[k]), levels[k], sum);
        }
        products[r] = fmaf(w[r].scales[i], static_cast<float>(sum), products[r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < n_rows; ++r) {
    float& sum = sums[r * sums_step];
    sum = fmaf(d_sum.x, products[r], sum);
    if constexpr (F::kHasMin) {
#pragma unroll
      for (int i = 0; i < W::kScales; ++i) sum = fmaf(-w[r].mins[i], x_sums[i], sum);
    }
  }
}

// out[t, o] = sum over parts of d (sum_i scale_i q_i . x_i) - min sum(x). A warp has n_rows rows
// and n_cols columns; every lane has one part of a step. `prepared` has columns of n_steps steps,
// with memory for whole groups of n_cols columns; what is there after column n - 1 does not matter.
template <bool exact, typename F, int n_rows, int n_cols>
__global__ void __launch_bounds__(kProjectThreads, min_blocks(n_cols))
    project_blocks_kernel(const Products products, const char* prepared, int n, int n_in,
                          int n_steps) {
  using Ring = WeightRing<F, n_rows>;
  ptx::let_next_kernel_start();
  const Product p = product_of_block(products);
  const int lane = threadIdx.x % kWarpSize, warp = threadIdx.x / kWarpSize;
  const int row = ((static_cast<int>(blockIdx.x) - p.first_block) * kProjectWarps + warp) * n_rows;
  const int col = blockIdx.y * n_cols;
  if (row >= p.n_out) return ptx::wait_for_earlier_kernels();

  Ring ring;
  ring.slots = dynamic_shared() + warp * Ring::kWarpBytes;
  ring.row_bytes = static_cast<int64_t>(n_in / F::kBlockValues) * F::kBlockBytes;
  ring.w = p.w + row * ring.row_bytes;
  ring.n_valid = min(n_rows, p.n_out - row);
  ring.n_steps = n_steps;
  ring.lane = lane;
#pragma unroll
  for (int step = 0; step < Ring::kSlots - 1; ++step) ring.request(step);
  ptx::wait_for_earlier_kernels();  // weights are under way before the activations are there

  constexpr int kBlockParts = F::kBlockValues / kPartValues;
  const int n_parts = n_in / kPartValues;
  const int block = lane / kBlockParts * F::kBlockBytes;
  const int first = lane % kBlockParts * kPartValues;  // first value in the block
  const int column_bytes = n_steps * kPreparedBytes<exact>;
  const char* x = prepared + static_cast<int64_t>(col) * column_bytes;

  float sums[n_rows * n_cols] = {};
  for (int step = 0; step < n_steps; ++step) {
    ptx::wait_copies<Ring::kSlots - 2>();
    __syncwarp();  // all lanes' copies are there, and the slot to fill has been read
    ring.request(step + Ring::kSlots - 1);
    if (step * kWarpSize + lane < n_parts) {
      WeightPart<F> parts[n_rows];
#pragma unroll
      for (int r = 0; r < n_rows; ++r) parts[r].read(ring.data(r, step) + block, first);
#pragma unroll
      for (int c = 0; c < n_cols; ++c) {
        add_products<exact, F, n_rows>(parts, x + c * column_bytes, lane, sums + c, n_cols);
      }
    }
    x += kPreparedBytes<exact>;
  }
  ptx::wait_copies<0>();
  put_sums<n_rows, n_cols>(p, row, col, n, lane, sums);
}

}  // namespace snapkv::cuda
