// SPDX-License-Identifier: MIT
// gemv_interleaved.h with 256-bit vectors. A file that includes this one defines SNAPKV_256 and
// SNAPKV_256_INLINE (its functions' target) and
//   PartSum<T>   the sum of the products of a part's levels, as Interleaved256<T> has them, with a
//                row of activations, an exact integer: add(k, levels, x) adds word k of the part,
//                each in turn
// A half of a unit's 16 rows is multiplied with up to 4 rows of activations at a time, for which 16
// registers suffice, the other half with the unit in the L1 cache; with a single row both at once,
// which reads the unit in order. The f32 sums are in the L1 cache too.
#pragma once

namespace snapkv::cpu {
namespace {

using InterleavedSums = float[kGemvMaxRows][kInterleavedRows];

/// acc[t][8 h ... 8 h + 7] += the products of H halves of a unit of weights, h = 0 ... H - 1, with
/// unit u of N rows of activations from `first` on. As many bytes as these halves have are fetched
/// at `fetched`, a little at a time.
template <DType T, int H, int N>
SNAPKV_256_INLINE void multiply_halves(const Interleaved256<T>* w, const GemvCall& c,
                                       int first, int64_t u, const char* fetched, float* acc) {
  using W = Interleaved256<T>;
  constexpr int kTogether = 2;  // parts that levels() reads at once
  constexpr int kBytesOfPart =
      H * kHalfRows * static_cast<int>(row_bytes(T, kGemvUnit)) / kSuperblockParts;
  constexpr int kLines = (kBytesOfPart * kTogether + 63) / 64;
  const InterleavedUnit* x[N];
  __m256 sums[H][N];
  acc += first * kInterleavedRows;
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    x[t] = reinterpret_cast<const InterleavedUnit*>(c.x + (first + t) * c.x_stride) + u;
    SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
      sums[h][t] = _mm256_load_ps(acc + t * kInterleavedRows + h * kHalfRows);
    }
  }
  for (int p = 0; p < kSuperblockParts; p += W::kGroup) {
    SNAPKV_UNROLL for (int i = 0; i < W::kGroup; i += kTogether) {
      SNAPKV_UNROLL for (int line = 0; line < kLines; ++line) {
        __builtin_prefetch(fetched + (p + i) * kBytesOfPart + line * 64, 0, 2);
      }
      PartSum<T> part[H][kTogether][N] = {};
      SNAPKV_UNROLL for (int k = 0; k < W::kDepth; ++k) {
        __m256i q[H][kTogether];
        SNAPKV_UNROLL for (int h = 0; h < H; ++h) w[h].levels(p, i, k, q[h]);
        SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
          SNAPKV_UNROLL for (int j = 0; j < kTogether; ++j) {
            const auto* values =
                reinterpret_cast<const char*>(x[t]->q) + ((p + i + j) * W::kDepth + k) * 4;
            const __m256i word = _mm256_set1_epi32(load_word<int32_t>(values));
            SNAPKV_UNROLL for (int h = 0; h < H; ++h) part[h][j][t].add(k, q[h][j], word);
          }
        }
      }
      SNAPKV_UNROLL for (int j = 0; j < kTogether; ++j) {
        const int at = p + i + j;
        SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
          const __m256 scale = w[h].scale(at), min = w[h].min(at);
          SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
            const __m256 products = _mm256_cvtepi32_ps(part[h][j][t].sum);
            const __m256 d = _mm256_mul_ps(scale, _mm256_broadcast_ss(&x[t]->d[at]));
            const __m256 sum_x = _mm256_broadcast_ss(&x[t]->negative_sum[at]);
            sums[h][t] = _mm256_fmadd_ps(products, d, sums[h][t]);
            sums[h][t] = _mm256_fmadd_ps(min, sum_x, sums[h][t]);
          }
        }
      }
    }
  }
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    SNAPKV_UNROLL for (int h = 0; h < H; ++h) {
      _mm256_store_ps(acc + t * kInterleavedRows + h * kHalfRows, sums[h][t]);
    }
  }
}

/// acc[t] += the products of a unit with unit u of each row of activations. As many bytes are
/// fetched at `fetched` as the unit has.
template <DType T>
SNAPKV_256 void multiply_unit(const char* unit, const GemvCall& c, int64_t u, const char* fetched,
                              InterleavedSums& acc) {
  using W = Interleaved256<T>;
  constexpr int64_t kHalfBytes = kHalfRows * row_bytes(T, kGemvUnit);
  const W w[2] = {W(unit, 0), W(unit, 1)};
  if (c.n == 1) return multiply_halves<T, 2, 1>(w, c, 0, u, fetched, acc[0]);
  for (int half = 0; half < 2; ++half) {
    float* sums = acc[0] + half * kHalfRows;
    const char* to_fetch = fetched + half * kHalfBytes;
    for (int t = 0; t < c.n; t += 4) {
      const int left = c.n - t;
      if (left >= 4) multiply_halves<T, 1, 4>(w + half, c, t, u, to_fetch, sums);
      if (left == 3) multiply_halves<T, 1, 3>(w + half, c, t, u, to_fetch, sums);
      if (left == 2) multiply_halves<T, 1, 2>(w + half, c, t, u, to_fetch, sums);
      if (left == 1) multiply_halves<T, 1, 1>(w + half, c, t, u, to_fetch, sums);
    }
  }
}

/// `rows` with those that do not exist, zeros, at the end.
template <DType T>
void copy_existing_rows(const char* rows, int64_t stride, int64_t n_rows, char* to) {
  constexpr int64_t kStride = row_bytes(T, kGemvUnit);
  std::memset(to, 0, kInterleavedRows * kStride);
  for (int64_t r = 0; r < n_rows; ++r) std::memcpy(to + r * kStride, rows + r * stride, kStride);
}

template <DType T, bool kBefore>
SNAPKV_256 void multiply_interleaved(const GemvCall& c) {
  constexpr int64_t kUnitBytes = row_bytes(T, kGemvUnit);
  const int64_t n_units = c.n_in / kGemvUnit;  // a superblock each
  const int64_t block_bytes = kInterleavedRows * c.w_stride;
  // rows of a block are read side by side, so the next block is fetched while this one is read
  const int64_t ahead = kBefore ? kPrefetchBytes : std::max(block_bytes, kPrefetchBytes);
  alignas(64) char unit[kInterleavedRows * kUnitBytes];
  alignas(64) char padded[kInterleavedRows * kUnitBytes];
  alignas(64) InterleavedSums acc;
  for (int64_t row = 0; row < c.n_rows; row += kInterleavedRows) {
    const int64_t n_rows = std::min(kInterleavedRows, c.n_rows - row);
    const char* w = c.w + row * c.w_stride;
    for (int t = 0; t < c.n; ++t) std::fill_n(acc[t], kInterleavedRows, 0.0f);
    for (int64_t u = 0; u < n_units; ++u) {
      const char* place = w + u * kInterleavedRows * kUnitBytes;  // as if units followed each other
      if constexpr (kBefore) {
        multiply_unit<T>(place, c, u, place + ahead, acc);
      } else {
        const char* rows = w + u * kUnitBytes;
        int64_t stride = c.w_stride;
        if (n_rows < kInterleavedRows) {
          copy_existing_rows<T>(rows, stride, n_rows, padded);
          rows = padded;
          stride = kUnitBytes;
        }
        Interleaved256<T>::interleave(rows, stride, unit);
        multiply_unit<T>(unit, c, u, place + ahead, acc);
      }
    }
    for (int t = 0; t < c.n; ++t) std::copy_n(acc[t], n_rows, c.sums + t * c.sums_stride + row);
  }
}

template <bool kBefore>
GemvFn find_multiply_interleaved(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    if constexpr (HasInterleaved256<type.dtype>) return multiply_interleaved<type.dtype, kBefore>;
    return nullptr;
  });
}

}  // namespace
}  // namespace snapkv::cpu
