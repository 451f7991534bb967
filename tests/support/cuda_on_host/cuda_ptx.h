// SPDX-License-Identifier: MIT
// The functions of src/backend/cuda/ptx.cuh on the host: see host_device.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/half.h"
#include "tests/support/cuda_on_host/cuda_bf16.h"
#include "tests/support/cuda_on_host/cuda_fp16.h"

namespace cuda_on_host::ptx {

inline void let_next_kernel_start() {}
inline void wait_for_earlier_kernels() { cuda_on_host::wait_for_earlier_kernels(); }

template <typename T>
float value_of(uint32_t pair, int i) {
  const auto bits = static_cast<uint16_t>(pair >> 16 * i);
  if constexpr (std::is_same_v<T, __half>) return snapkv::to_f32(snapkv::f16_t{bits});
  return snapkv::to_f32(snapkv::bf16_t{bits});
}

template <typename T>
void mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                 const float (&c)[4]) {
  uint32_t own[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const auto slots = exchange(0xffffffffu, own, sizeof(own));
  const auto of = [&](int lane, int reg) {
    uint32_t v;
    std::memcpy(&v, slots[lane] + 4 * reg, 4);
    return v;
  };
  const auto a_at = [&](int row, int k) {
    return value_of<T>(of(row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2), k % 2);
  };
  const auto b_at = [&](int k, int col) {
    return value_of<T>(of(col * 4 + k % 8 / 2, 4 + k / 8), k % 2);
  };
  const int g = lane() / 4, t = lane() % 4;
  float out[4];
  for (int i = 0; i < 4; ++i) {
    double sum = c[i];
    for (int k = 0; k < 16; ++k) {
      sum += static_cast<double>(a_at(g + i / 2 * 8, k)) * b_at(k, 2 * t + i % 2);
    }
    out[i] = static_cast<float>(sum);
  }
  std::memcpy(d, out, sizeof(out));
}

inline void load_matrices_of(uint32_t (&r)[4], const void* row, bool transposed) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    std::fprintf(stderr, "cuda_on_host: ldmatrix of a row that is not 16-byte aligned\n");
    std::abort();
  }
  const auto slots = exchange(0xffffffffu, &row, sizeof(row));
  const auto at = [&](int matrix, int i, int j) {
    const char* begin;
    std::memcpy(&begin, slots[8 * matrix + i], sizeof(begin));
    uint16_t v;
    std::memcpy(&v, begin + 2 * j, 2);
    return static_cast<uint32_t>(v);
  };
  const int g = lane() / 4, t = lane() % 4;
  for (int m = 0; m < 4; ++m) {
    r[m] = transposed ? at(m, 2 * t, g) | at(m, 2 * t + 1, g) << 16
                      : at(m, g, 2 * t) | at(m, g, 2 * t + 1) << 16;
  }
  sync_warp(0xffffffffu);  // the rows may be overwritten after this instruction
}
inline void load_matrices(uint32_t (&r)[4], const void* row) { load_matrices_of(r, row, false); }
inline void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  load_matrices_of(r, row, true);
}

inline void copy_async_16(void* shared, const void* global, int n_read = 16) {
  if (reinterpret_cast<uintptr_t>(shared) % 16 != 0 ||
      (n_read > 0 && reinterpret_cast<uintptr_t>(global) % 16 != 0)) {
    std::fprintf(stderr, "cuda_on_host: cp.async of what is not 16-byte aligned\n");
    std::abort();
  }
  copy_async(shared, global, 16, static_cast<size_t>(n_read));
}
inline void commit_copies() { cuda_on_host::commit_copies(); }
template <int n_left>
void wait_copies() {
  cuda_on_host::wait_copies(n_left);
}

inline float exp2_approx(float v) {
  const float out = std::exp2(v);
  return out < 0x1p-126f ? 0.0f : out;  // NaN is kept
}

}  // namespace cuda_on_host::ptx
