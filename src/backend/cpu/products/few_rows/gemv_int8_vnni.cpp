// SPDX-License-Identifier: MIT
// 8-bit activations times weights in blocks of 32 values, or in superblocks that are 8 such blocks,
// with AVX-512 VNNI. gemv_int8_vnni_k.cpp has the other superblocks.
//
// vpdpbusd adds 4 products of bytes into each 32-bit lane. A block's scale belongs to its lanes, so
// if a vector holds 8 blocks with 2 lanes each, the work per 8 blocks is 4 vpdpbusd, one conversion
// and one f32 multiply-add. Two unpacks per half block bring the weights into this order:
//   lanes 4i, 4i + 1 hold block i, lanes 4i + 2, 4i + 3 block i + 4 (i < 4);
//   vector v holds values 8v ... 8v + 7 of each.
// prepare() stores activations in the same order. Weights are made unsigned (q8_0: + 128; q4_0: as
// stored, + 8), and the surplus, 128 or 8 times the sum of the activations, is subtracted in the
// accumulator's initial value: the integer sums are exact. Minima multiply the sums in f32.
#include "backend/cpu/products/few_rows/gemv_int8_vnni.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "format/block_types.h"

namespace snapkv::cpu {
namespace {

using Unit = VnniUnit;
constexpr int kUnitBlocks = kGemvUnit / kBlockSize;  // 8

SNAPKV_VNNI void prepare(const float* x, int64_t n, void* unit_) {
  Unit& unit = *static_cast<Unit*>(unit_);
  const __m512i absolute = _mm512_set1_epi32(0x7fffffff);
  const __m512i floor = _mm512_set1_epi32(-128);  // what a NaN becomes, as bytes hold it
  for (int b = 0; b < kUnitBlocks; ++b) {
    const int64_t left = std::clamp<int64_t>(n - b * kBlockSize, 0, kBlockSize);
    const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << left) - 1);
    const __m512 x0 = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + b * kBlockSize);
    const __m512 x1 =
        _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + b * kBlockSize + 16);
    // compared as integers, so that a NaN is the maximum and shows in the result
    const uint32_t max_bits = _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x0), absolute),
                         _mm512_and_si512(_mm512_castps_si512(x1), absolute)));
    float max;
    std::memcpy(&max, &max_bits, sizeof(max));
    const __m512 inverse = _mm512_set1_ps(max > 0.0f ? 127.0f / max : 0.0f);
    alignas(32) int8_t q[kBlockSize];
    const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
    const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
    _mm_store_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtsepi32_epi8(q0));
    _mm_store_si128(reinterpret_cast<__m128i*>(q + 16), _mm512_cvtsepi32_epi8(q1));
    const int lane = lane_of(b);
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) std::memcpy(&unit.q[v][4 * lane], q + 8 * v, 8);
    unit.d[lane] = unit.d[lane + 1] = max / 127.0f;
    unit.sum[b] = max / 127.0f *
                  static_cast<float>(_mm512_reduce_add_epi32(
                      _mm512_add_epi32(_mm512_max_epi32(q0, floor), _mm512_max_epi32(q1, floor))));
    unit.sum[kUnitBlocks + b] = 0.0f;
  }
  const __m512i zero = _mm512_setzero_si512(), ones = _mm512_set1_epi8(1);
  const __m512i first =
      _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, ones, _mm512_load_si512(unit.q[0])), ones,
                          _mm512_load_si512(unit.q[1]));
  const __m512i last =
      _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, ones, _mm512_load_si512(unit.q[2])), ones,
                          _mm512_load_si512(unit.q[3]));
  const __m512i sums = _mm512_mask_blend_epi16(0xaaaaaaaa, first, _mm512_slli_epi32(last, 16));
  _mm512_store_si512(unit.negative_sums, _mm512_sub_epi16(zero, sums));
}

/// 8 blocks of weights in registers.
struct Weights {
  VnniLevels q;
  __m512 d;
  __m512
      last_d;  // with HasVnniHalfBlocks: d is then the scale of the first 16 values of each block
  __m512 min;  // -m of blocks 0 ... 7, then zeros; if the type has minima
};

template <DType T>
SNAPKV_VNNI_INLINE void load_scales(const char* p, Weights& w) {
  if constexpr (HasVnniHalfBlocks<T>) {
    const HalfScales d = X86Block<T>::half_d_8(p);
    w.d = d.first;
    w.last_d = d.last;
  } else {
    w.d = X86Block<T>::d_8(p);
  }
  if constexpr (kHasMin<T>) w.min = X86Block<T>::min_16(p);
}
template <DType T>
SNAPKV_VNNI_INLINE void load_weights(const char* p, Weights& w) {
  X86Block<T>::load_8(p, w.q);
  load_scales<T>(p, w);
}

/// Whether places of a codebook's entries are read one unit ahead, since they are stored as vectors
/// and loaded as single numbers (measured on a Zen 4: 0.82 to 0.93 of the time; more than before
/// for iq2_xxs, whose file has the places as they are).
template <DType T>
constexpr bool kReadsAhead =
    T == DType::iq2_xs || T == DType::iq2_s || T == DType::iq1_s || T == DType::iq1_m;

/// Loads complete units of a row, one after the other.
template <DType T>
struct UnitLoader {
  SNAPKV_VNNI_INLINE void begin(const char*) {}
  SNAPKV_VNNI_INLINE void load(const char* p, bool, Weights& w) { load_weights<T>(p, w); }
};
template <DType T>
requires kReadsAhead<T>
struct UnitLoader<T> {
  CodebookLevels<T> groups[2];
  int at = 0;
  SNAPKV_VNNI_INLINE void begin(const char* p) { groups[at].read(p); }
  SNAPKV_VNNI_INLINE void load(const char* p, bool is_last, Weights& w) {
    if (!is_last) groups[1 - at].read(p + block_bytes(T));
    load_all_levels<X86Block<T>::kSurplus>(groups[at], w.q);
    load_scales<T>(p, w);
    at = 1 - at;
  }
};

/// acc[r][t] += the dot products of one unit.
template <DType T, int R, int N>
SNAPKV_VNNI_INLINE void multiply_unit(const Weights (&w)[R], const Unit* const (&x)[N], int64_t u,
                                      __m512 (&acc)[R][N]) {
  [[maybe_unused]] const __m512i surplus_of_weight = _mm512_set1_epi16(X86Block<T>::kSurplus);
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const Unit& unit = x[t][u];
    __m512i surplus = _mm512_setzero_si512();
    if constexpr (X86Block<T>::kSurplus != 0) {
      surplus = _mm512_madd_epi16(_mm512_load_si512(unit.negative_sums), surplus_of_weight);
    }
    const __m512 d = _mm512_load_ps(unit.d);
    __m512i sum[R];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = surplus;
    SNAPKV_UNROLL for (int v = 0; v < 4; ++v) {
      const __m512i q = _mm512_load_si512(unit.q[v]);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) sum[r] = _mm512_dpbusd_epi32(sum[r], w[r].q[v], q);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      if constexpr (kHasMin<T>) {
        acc[r][t] = _mm512_fnmadd_ps(w[r].min, _mm512_load_ps(unit.sum), acc[r][t]);
      }
      acc[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(w[r].d, d), acc[r][t]);
    }
  }
}

/// The same where a scale belongs to 16 values.
template <DType T, int R, int N>
SNAPKV_VNNI_INLINE void multiply_half_blocks(const Weights (&w)[R], const Unit* const (&x)[N],
                                             int64_t u, __m512 (&acc)[R][N]) {
  constexpr int kSurplus = X86Block<T>::kSurplus;
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    const Unit& unit = x[t][u];
    const __m512i negative_sums = _mm512_load_si512(unit.negative_sums);
    const __m512 d = _mm512_load_ps(unit.d);
    __m512i first[R], last[R];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      first[r] = _mm512_madd_epi16(negative_sums, _mm512_set1_epi32(kSurplus));
      last[r] = _mm512_madd_epi16(negative_sums, _mm512_set1_epi32(kSurplus << 16));
    }
    SNAPKV_UNROLL for (int v = 0; v < 2; ++v) {
      const __m512i q = _mm512_load_si512(unit.q[v]), q2 = _mm512_load_si512(unit.q[2 + v]);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        first[r] = _mm512_dpbusd_epi32(first[r], w[r].q[v], q);
        last[r] = _mm512_dpbusd_epi32(last[r], w[r].q[2 + v], q2);
      }
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      const __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(first[r]), w[r].d,
                                         _mm512_mul_ps(_mm512_cvtepi32_ps(last[r]), w[r].last_d));
      acc[r][t] = _mm512_fmadd_ps(sum, d, acc[r][t]);
    }
  }
}

template <DType T, int R, int N>
SNAPKV_VNNI_INLINE void multiply_weights(const Weights (&w)[R], const Unit* const (&x)[N],
                                         int64_t u, __m512 (&acc)[R][N]) {
  if constexpr (HasVnniHalfBlocks<T>) {
    multiply_half_blocks<T, R, N>(w, x, u, acc);
  } else {
    multiply_unit<T, R, N>(w, x, u, acc);
  }
}

template <DType T>
struct Kernel {
  static constexpr int64_t kUnitBytes = row_bytes(T, kGemvUnit);

  template <int R, int N>
  SNAPKV_VNNI static void tile(const GemvCall& c, const avx512::TileRange& range,
                               __m512 (*sums)[N]) {
    const Unit* x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = reinterpret_cast<const Unit*>(c.x + t * c.x_stride);
    }
    __m512 acc[R][N];
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) acc[r][t] = sums[r][t];
    }
    const int64_t n_complete = c.n_in / kGemvUnit;
    const char* p = c.w + range.row * c.w_stride + range.unit_begin * kUnitBytes;
    Weights w[R];
    UnitLoader<T> loaders[R];
    const int64_t unit_end = std::min(range.unit_end, n_complete);
    if (range.unit_begin < unit_end) {
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) loaders[r].begin(p + r * c.w_stride);
    }
    for (int64_t u = range.unit_begin; u < unit_end; ++u) {
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const char* q = p + r * c.w_stride;
        for (int64_t i = 0; i < kUnitBytes; i += 64) __builtin_prefetch(q + range.ahead + i, 0, 2);
        loaders[r].load(q, u + 1 == unit_end, w[r]);
      }
      multiply_weights<T, R, N>(w, x, u, acc);
      p += kUnitBytes;
    }
    if (range.unit_end > n_complete) {  // missing blocks are zero, scale included
      const int64_t n_bytes = row_bytes(T, c.n_in % kGemvUnit);
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        alignas(64) char padded[kUnitBytes] = {};
        std::memcpy(padded, p + r * c.w_stride, static_cast<size_t>(n_bytes));
        load_weights<T>(padded, w[r]);
      }
      multiply_weights<T, R, N>(w, x, n_complete, acc);
    }
    SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) sums[r][t] = acc[r][t];
    }
  }
};

GemvFn find_multiply(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    constexpr DType T = type.dtype;
    if constexpr (HasVnniBlocks<T> || HasVnniHalfBlocks<T>) {
      return avx512::multiply<Kernel<T>>;
    }
    return vnni_superblock_function(T);
  });
}

}  // namespace

const GemvKernel& gemv_int8_vnni() {
  static const GemvKernel kernel{.name = "int8 AVX-512 VNNI",
                                 .unit_bytes = sizeof(Unit),
                                 .prepare = prepare,
                                 .function = find_multiply};
  return kernel;
}

}  // namespace snapkv::cpu

#endif  // x86-64
