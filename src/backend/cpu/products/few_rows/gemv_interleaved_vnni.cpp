// SPDX-License-Identifier: MIT
// gemv_interleaved.h with AVX-512 VNNI. vpdpbusd adds 4 products of bytes into each lane, which
// belongs to an output: 4 values of 16 rows of weights times the same 4 of a row of activations.
#include "backend/cpu/products/few_rows/gemv_interleaved.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "backend/cpu/products/few_rows/round_block_x86.h"
#include "backend/cpu/weights/interleaved_avx512.h"

namespace snapkv::cpu {
namespace {

using Unit = InterleavedUnit;
constexpr int kUnitBlocks = kGemvUnit / kBlockSize;

SNAPKV_VNNI void prepare(const float* x, int64_t n, void* unit_) {
  Unit& unit = *static_cast<Unit*>(unit_);
  const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
  alignas(32) int32_t fours[kBlockSize / 4];
  for (int b = 0; b < kUnitBlocks; ++b) {
    const int64_t left = std::clamp<int64_t>(n - b * kBlockSize, 0, kBlockSize);
    const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << left) - 1);
    FloatBlock values;
    SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
      values[i] = _mm256_maskz_loadu_ps(static_cast<__mmask8>(mask >> (8 * i)),
                                        x + b * kBlockSize + 8 * i);
    }
    const float max = max_magnitude(values);
    const __m256i q = round_block(values, max > 0.0f ? 127.0f / max : 0.0f);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(unit.q + b * kBlockSize), q);
    const __m256i sums = _mm256_sub_epi32(zero, _mm256_dpbusd_epi32(zero, ones, q));
    _mm256_store_si256(reinterpret_cast<__m256i*>(fours), sums);
    const int32_t first = fours[0] + fours[1] + fours[2] + fours[3];
    const int32_t last = fours[4] + fours[5] + fours[6] + fours[7];
    unit.d[b] = max / 127.0f;
    unit.negative_half_sums[2 * b] = first;
    unit.negative_half_sums[2 * b + 1] = last;
    unit.negative_sums[b] = first + last;
    unit.negative_sum[b] = unit.d[b] * static_cast<float>(first + last);
  }
}

SNAPKV_VNNI_INLINE __m512i broadcast_word(const void* p) {
  return _mm512_set1_epi32(load_word<int32_t>(static_cast<const char*>(p)));
}

/// What the sums of each part begin with: kSurplus times the negated sum of its activations.
template <DType T, int N>
struct alignas(64) Surplus {
  static constexpr bool kHalves = HasHalfScales<T>;
  int32_t at[N][16];

  SNAPKV_VNNI_INLINE Surplus(const Unit* const (&x)[N], int64_t u) {
    const __m512i factor = _mm512_set1_epi32(Interleaved<T>::kSurplus);
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      const __m512i sums =
          kHalves ? _mm512_loadu_si512(x[t][u].negative_half_sums)
                  : _mm512_castsi256_si512(_mm256_loadu_si256(
                        reinterpret_cast<const __m256i*>(x[t][u].negative_sums)));
      _mm512_store_si512(at[t], _mm512_mullo_epi32(sums, factor));
    }
  }
};

/// Where weights are fetched to, and how far ahead. A single row of activations takes less time
/// than the L2 cache needs to pass its weights on. Of 8-bit weights it does not: two cores of a Zen
/// 4 read 57 GB/s of them so far ahead into L2, and 52 into L1.
template <DType T, bool kBefore, int N>
constexpr bool kInOneStream = kBefore && N == 1 && Interleaved<T>::kInOrder;
template <DType T, bool kBefore, int N>
constexpr bool kIntoL1 = kInOneStream<T, kBefore, N> && T != DType::q8_0;
template <DType T, bool kBefore, int N>
constexpr int64_t kFetchAhead = kIntoL1<T, kBefore, N>        ? 4096
                                : kInOneStream<T, kBefore, N> ? 3072
                                                              : kPrefetchBytes;

/// acc[t] += the products of a unit of weights with unit u of each row of activations. As many bytes
/// are fetched at `fetched` as a unit has, a little at a time: the processor has few places for
/// lines that are on their way.
template <DType T, bool kBefore, int N>
SNAPKV_VNNI_INLINE void multiply_unit(const Interleaved<T>& w, const Unit* const (&x)[N], int64_t u,
                                      const char* fetched, __m512 (&acc)[N]) {
  using W = Interleaved<T>;
  constexpr int kTogether = W::kTogether;
  constexpr int kBytesOfPart =
      kInterleavedRows * static_cast<int>(row_bytes(T, kGemvUnit)) / (kGemvUnit / 4 / W::kDepth);
  constexpr int kLines = (kBytesOfPart * kTogether + 63) / 64;
  constexpr int kPartsOfScale = HasHalfScales<T> ? 2 : 1;  // activations' scales are of 32 values
  [[maybe_unused]] const Surplus<T, N> surplus(x, u);
  for (int p = 0; p < w.n_parts(); p += kTogether) {
    __m512i sum[kTogether][N];
    SNAPKV_UNROLL for (int i = 0; i < kTogether; ++i) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
        sum[i][t] = _mm512_setzero_si512();
        if constexpr (W::kSurplus != 0) sum[i][t] = broadcast_word(&surplus.at[t][p + i]);
      }
    }
    SNAPKV_UNROLL for (int k = 0; k < W::kDepth; ++k) {
      SNAPKV_UNROLL for (int i = k * kLines / W::kDepth; i < (k + 1) * kLines / W::kDepth; ++i) {
        __builtin_prefetch(fetched + p * kBytesOfPart + i * 64, 0, kIntoL1<T, kBefore, N> ? 3 : 2);
      }
      __m512i q[kTogether];
      w.levels(p, k, q);
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
        SNAPKV_UNROLL for (int i = 0; i < kTogether; ++i) {
          const int8_t* values = x[t][u].q + ((p + i) * W::kDepth + k) * 4;
          sum[i][t] = _mm512_dpbusd_epi32(sum[i][t], q[i], broadcast_word(values));
        }
      }
    }
    SNAPKV_UNROLL for (int i = 0; i < kTogether; ++i) {
      const __m512 scale = w.scale(p + i);
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
        const int at = (p + i) / kPartsOfScale;
        const __m512 d = _mm512_mul_ps(scale, _mm512_set1_ps(x[t][u].d[at]));
        acc[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i][t]), d, acc[t]);
        if constexpr (kHasMin<T>) {
          acc[t] =
              _mm512_fmadd_ps(w.min(p + i), _mm512_set1_ps(x[t][u].negative_sum[at]), acc[t]);
        }
      }
    }
  }
}

/// `rows` with those that do not exist, zeros, at the end.
template <DType T>
void copy_rows(const char* rows, int64_t stride, int64_t n_rows, int64_t n_bytes, char* to) {
  constexpr int64_t kStride = row_bytes(T, kGemvUnit);
  std::memset(to, 0, kInterleavedRows * kStride);
  for (int64_t r = 0; r < n_rows; ++r) std::memcpy(to + r * kStride, rows + r * stride, n_bytes);
}

/// `copy`: as in KeepingCall, or null; only without kBefore.
template <DType T, bool kBefore, int N>
SNAPKV_VNNI void multiply_rows(const GemvCall& c, [[maybe_unused]] char* copy) {
  constexpr int64_t kUnitBytes = row_bytes(T, kGemvUnit);
  const int64_t n_units = (c.n_in + kGemvUnit - 1) / kGemvUnit;
  const int64_t block_bytes = kInterleavedRows * c.w_stride;
  // rows of a block are read side by side, so the next block is fetched while this one is read
  const int64_t ahead = kBefore ? kFetchAhead<T, kBefore, N> : std::max(block_bytes, kPrefetchBytes);
  const Unit* x[N];
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    x[t] = reinterpret_cast<const Unit*>(c.x + t * c.x_stride);
  }
  alignas(64) char unit[kInterleavedRows * kUnitBytes];
  alignas(64) char padded[kInterleavedRows * kUnitBytes];
  for (int64_t row = 0; row < c.n_rows; row += kInterleavedRows) {
    const int64_t n_rows = std::min(kInterleavedRows, c.n_rows - row);
    const char* w = c.w + row * c.w_stride;
    __m512 acc[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[t] = _mm512_setzero_ps();
    for (int64_t u = 0; u < n_units; ++u) {
      const int64_t n_values = std::min(kGemvUnit, c.n_in - u * kGemvUnit);
      const int64_t n_bytes = row_bytes(T, n_values);
      const char* place = w + u * kInterleavedRows * kUnitBytes;  // as if units followed each other
      const char* fetched = c.fetch == nullptr ? place + ahead : c.fetch + (place - c.w);
      if constexpr (kBefore) {
        multiply_unit<T, kBefore, N>(Interleaved<T>(place, n_values), x, u, fetched, acc);
      } else {
        const char* rows = w + u * kUnitBytes;
        int64_t stride = c.w_stride;
        if (n_rows < kInterleavedRows) {
          copy_rows<T>(rows, stride, n_rows, n_bytes, padded);
          rows = padded;
          stride = kUnitBytes;
        }
        char* const to = copy == nullptr ? unit : copy + (place - c.w);
        Interleaved<T>::interleave({rows, stride}, n_values, to);
        multiply_unit<T, kBefore, N>(Interleaved<T>(to, n_values), x, u, fetched, acc);
      }
    }
    const __mmask16 mask = static_cast<__mmask16>((1u << n_rows) - 1);
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      _mm512_mask_storeu_ps(c.sums + t * c.sums_stride + row, mask, acc[t]);
    }
  }
}

template <DType T, bool kBefore>
void multiply_any(const GemvCall& c, char* copy) {
  static constexpr void (*kOfRows[])(const GemvCall&, char*) = {
      multiply_rows<T, kBefore, 1>, multiply_rows<T, kBefore, 2>, multiply_rows<T, kBefore, 3>,
      multiply_rows<T, kBefore, 4>, multiply_rows<T, kBefore, 5>, multiply_rows<T, kBefore, 6>,
      multiply_rows<T, kBefore, 7>, multiply_rows<T, kBefore, 8>};
  static_assert(std::size(kOfRows) == kGemvMaxRows);
  kOfRows[c.n - 1](c, copy);
}

template <DType T, bool kBefore>
void multiply(const GemvCall& c) {
  multiply_any<T, kBefore>(c, nullptr);
}

template <DType T>
void multiply_keeping(const KeepingCall& c) {
  multiply_any<T, false>(c, c.copy);
}

template <DType T>
SNAPKV_VNNI void interleave(const char* rows, int64_t stride, int64_t n_values, char* unit) {
  Interleaved<T>::interleave({rows, stride}, n_values, unit);
}

template <bool kBefore>
GemvFn find_multiply(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    if constexpr (HasInterleaved<type.dtype>) return multiply<type.dtype, kBefore>;
    return nullptr;
  });
}

}  // namespace

const GemvKernel& gemv_interleaved_vnni() {
  static const GemvKernel kernel{.name = "int8 AVX-512 VNNI, interleaved",
                                 .unit_bytes = sizeof(Unit),
                                 .prepare = prepare,
                                 .function = find_multiply<false>};
  return kernel;
}

GemvFn gemv_interleaved_before_vnni(DType weight) { return find_multiply<true>(weight); }

KeepingGemvFn gemv_interleaved_keeping_vnni(DType weight) {
  return visit_weight_type(weight, [](auto type) -> KeepingGemvFn {
    if constexpr (HasInterleaved<type.dtype>) return multiply_keeping<type.dtype>;
    return nullptr;
  });
}

InterleaveFn interleave_avx512(DType weight) {
  return visit_weight_type(weight, [](auto type) -> InterleaveFn {
    if constexpr (HasInterleaved<type.dtype>) return interleave<type.dtype>;
    return nullptr;
  });
}

}  // namespace snapkv::cpu

#endif  // x86-64
