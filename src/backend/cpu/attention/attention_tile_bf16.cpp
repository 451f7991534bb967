// SPDX-License-Identifier: MIT
// Attention tiles with native bf16 products (AVX512_BF16), f32 accumulation and f32 softmax.
//
// vdpbf16ps multiplies pairs: lane l of the result adds a[2l] b[2l] + a[2l+1] b[2l+1]. One operand
// is a broadcast pair of a query row (or of its probabilities), the other holds 16 columns of
// packed pairs. Layouts, in 32-bit pairs: q [n_rows, head_dim / 2]; K in panels of 64 columns,
// [panel][head_dim / 2][64], with zeros in the last panel's unused columns; V in panels of 64
// values (the last one narrower), [panel][n_rows / 2][width], where a zero row completes an odd
// count.
#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
// GCC's own intrinsics start from an undefined register (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/attention/attention_tile.h"
#include "backend/cpu/target/avx512_util.h"

// A function attribute rather than compiler flags, so that nothing else in this file, above all
// inline functions of headers, is compiled for instructions that the processor may lack.
#define SNAPKV_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
#define SNAPKV_BF16_INLINE SNAPKV_BF16 __attribute__((always_inline)) inline

namespace snapkv::cpu {
namespace {

constexpr int kPanel = 64;  // columns: 4 vectors; 24 accumulators with kRowGroup rows

SNAPKV_BF16_INLINE __m512 load_f32(const char* row, DType dtype, int i, __mmask16 mask) {
  switch (dtype) {
    case DType::f16:
      return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, row + 2 * i));
    case DType::bf16:
      return _mm512_castsi512_ps(_mm512_slli_epi32(
          _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row + 2 * i)), 16));
    default:
      return _mm512_maskz_loadu_ps(mask, row + 4 * i);
  }
}

SNAPKV_BF16_INLINE __m512i as_pairs(__m512bh x) {
  __m512i out;
  __builtin_memcpy(&out, &x, sizeof(out));
  return out;
}
SNAPKV_BF16_INLINE __m512bh as_bf16(__m512i x) {
  __m512bh out;
  __builtin_memcpy(&out, &x, sizeof(out));
  return out;
}

constexpr __mmask16 lane_mask(int n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << (n > 0 ? n : 0)) - 1);
}

/// Loads 32 values of a row as bf16: 16 pairs; values at `n_valid` and beyond are 0.
SNAPKV_BF16_INLINE __m512i load_pairs(const char* row, DType dtype, int n_valid) {
  if (dtype == DType::bf16) {
    const __mmask32 mask = n_valid >= 32 ? 0xffffffffu : (1u << n_valid) - 1u;
    return _mm512_maskz_loadu_epi16(mask, row);
  }
  const __m512 low = load_f32(row, dtype, 0, lane_mask(n_valid));
  const __m512 high = load_f32(row, dtype, 16, lane_mask(n_valid - 16));
  return as_pairs(_mm512_cvtne2ps_pbh(high, low));
}

SNAPKV_BF16 void pack_q(const float* q, int head_dim, float scale, void* dst) {
  char* out = static_cast<char*>(dst);
  const __m512 s = _mm512_set1_ps(scale);
  for (int i = 0; i < head_dim; i += 32) {
    const int n = std::min(head_dim - i, 32);
    const __m512 low = _mm512_maskz_loadu_ps(lane_mask(n), q + i);
    const __m512 high = _mm512_maskz_loadu_ps(lane_mask(n - 16), q + i + 16);
    const __m512i pairs =
        as_pairs(_mm512_cvtne2ps_pbh(_mm512_mul_ps(high, s), _mm512_mul_ps(low, s)));
    _mm512_mask_storeu_epi32(out + 2 * i, lane_mask(n / 2), pairs);
  }
}

/// Transposes 16 vectors of 16 32-bit values in place.
SNAPKV_BF16_INLINE void transpose_16x16(__m512i r[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 16; i += 8) {
    for (int j = 0; j < 4; ++j) {
      t[i + j] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0x88);
      t[i + j + 4] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0xdd);
    }
  }
  for (int j = 0; j < 8; ++j) {
    r[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88);
    r[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
  }
}

SNAPKV_BF16 void pack_k(const KvRows& k, void* dst) {
  const int n_pairs = k.head_dim / 2;
  uint32_t* panel = static_cast<uint32_t*>(dst);
  for (int begin = 0; begin < k.n_rows; begin += kPanel, panel += n_pairs * kPanel) {
    for (int c = 0; c < kPanel; c += 16) {
      for (int i = 0; i < n_pairs; i += 16) {
        const int n = std::min(n_pairs - i, 16);
        __m512i r[16];
        for (int j = 0; j < 16; ++j) {
          const int row = begin + c + j;
          const int64_t offset = row * k.stride + 2 * i * block_bytes(k.dtype);
          r[j] =
              row < k.n_rows ? load_pairs(k.data + offset, k.dtype, 2 * n) : _mm512_setzero_si512();
        }
        transpose_16x16(r);
        // vector j now holds pair i + j of 16 columns
        for (int j = 0; j < n; ++j) _mm512_storeu_si512(panel + (i + j) * kPanel + c, r[j]);
      }
    }
  }
}

SNAPKV_BF16 void pack_v(const KvRows& v, void* dst) {
  const int n_pairs = (v.n_rows + 1) / 2;
  const int width = padded_dim(v.head_dim);
  uint32_t* out = static_cast<uint32_t*>(dst);
  for (int row = 0; row < n_pairs; ++row) {
    const char* even = v.data + 2 * row * v.stride;
    const bool has_odd = 2 * row + 1 < v.n_rows;
    for (int i = 0; i < width; i += 16) {
      const __mmask16 mask = lane_mask(v.head_dim - i);
      const __m512 low = load_f32(even, v.dtype, i, mask);
      const __m512 high =
          has_odd ? load_f32(even + v.stride, v.dtype, i, mask) : _mm512_setzero_ps();
      // lanes 0-15 of `both` are bf16(low), 16-31 bf16(high): interleave them
      const __m512i both = as_pairs(_mm512_cvtne2ps_pbh(high, low));
      const __m512i l = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(both));
      const __m512i h = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(both, 1));
      const int panel = i / kPanel * kPanel;
      const int panel_width = std::min(width - panel, kPanel);
      uint32_t* to = out + static_cast<int64_t>(panel) * n_pairs + row * panel_width + (i - panel);
      _mm512_storeu_si512(to, _mm512_or_si512(l, _mm512_slli_epi32(h, 16)));
    }
  }
}

/// c[r, :] = factor[r] * c[r, :] + sum_i a[r, i] . b[i, :] over n pairs, for kRowGroup rows and C
/// vectors of columns; without `factor`, c is overwritten. lda and ldb count pairs.
template <int C>
SNAPKV_BF16_INLINE void multiply(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb,
                                 int n, const float* factor, float* c, int64_t ldc) {
  __m512 sum[kRowGroup][C];
  for (int r = 0; r < kRowGroup; ++r) {
    for (int v = 0; v < C; ++v) {
      sum[r][v] = factor == nullptr ? _mm512_setzero_ps()
                                    : _mm512_mul_ps(_mm512_loadu_ps(c + r * ldc + 16 * v),
                                                    _mm512_set1_ps(factor[r]));
    }
  }
  for (int i = 0; i < n; ++i) {
    __m512bh bv[C];
    for (int v = 0; v < C; ++v) bv[v] = as_bf16(_mm512_loadu_si512(b + i * ldb + 16 * v));
    for (int r = 0; r < kRowGroup; ++r) {
      const __m512bh av = as_bf16(_mm512_set1_epi32(static_cast<int>(a[r * lda + i])));
      for (int v = 0; v < C; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], av, bv[v]);
    }
  }
  for (int r = 0; r < kRowGroup; ++r) {
    for (int v = 0; v < C; ++v) _mm512_storeu_ps(c + r * ldc + 16 * v, sum[r][v]);
  }
}

/// multiply() for the first n_vectors (1 to 4) vectors of a panel.
SNAPKV_BF16 void multiply_panel(const uint32_t* a, int64_t lda, const uint32_t* b, int64_t ldb,
                                int n, const float* factor, float* c, int64_t ldc, int n_vectors) {
  switch (n_vectors) {
    case 1:
      return multiply<1>(a, lda, b, ldb, n, factor, c, ldc);
    case 2:
      return multiply<2>(a, lda, b, ldb, n, factor, c, ldc);
    case 3:
      return multiply<3>(a, lda, b, ldb, n, factor, c, ldc);
    default:
      return multiply<4>(a, lda, b, ldb, n, factor, c, ldc);
  }
}

/// 2^x for x <= 0, relative error below 3e-6; see simd_math-inl.h. Minimax polynomial of degree 4
/// on [-0.5, 0.5] with 2^0 = 1. That is enough: the result is rounded to bf16 (relative error 2e-3)
/// or summed.
SNAPKV_BF16_INLINE __m512 exp2_nonpositive(__m512 x) {
  const __m512 magic = _mm512_set1_ps(12582912.0f);  // 1.5 * 2^23
  x = _mm512_max_ps(_mm512_set1_ps(-127.0f), x);     // in this order, which keeps a NaN
  const __m512 shifted = _mm512_add_ps(x, magic);
  const __m512 f = _mm512_sub_ps(x, _mm512_sub_ps(shifted, magic));
  __m512 p = _mm512_set1_ps(9.582852994e-3f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(5.590642474e-2f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(2.402409861e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(6.931241934e-1f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), n));
}

/// Caps n scores and up to 15 after them.
SNAPKV_BF16 void cap_scores(float* s, int n, float softcap) {
  const SoftcapFactors factors(softcap);
  const __m512 exponent = _mm512_set1_ps(factors.exponent);
  const __m512 amplitude = _mm512_set1_ps(factors.amplitude), one = _mm512_set1_ps(1.0f);
  const __m512 inverse = _mm512_set1_ps(factors.inverse);
  for (int j = 0; j < n; j += 16) {
    const __m512 x = _mm512_loadu_ps(s + j);
    const __m512 magnitude = _mm512_abs_ps(x);
    const __m512 e = exp2_nonpositive(_mm512_mul_ps(magnitude, exponent));
    const __m512 tanh = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
    const __m512 t = _mm512_mul_ps(magnitude, inverse), t2 = _mm512_mul_ps(t, t);
    __m512 series = _mm512_set1_ps(factors.kSeries[0]);
    SNAPKV_UNROLL for (int i = 1; i < 4; ++i) {
      series = _mm512_fmadd_ps(series, t2, _mm512_set1_ps(factors.kSeries[i]));
    }
    const __mmask16 is_small = _mm512_cmp_ps_mask(t, _mm512_set1_ps(factors.kSmall), _CMP_LT_OQ);
    const __m512 capped =
        _mm512_mask_mul_ps(_mm512_mul_ps(tanh, amplitude), is_small, magnitude, series);
    const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0f));
    _mm512_storeu_ps(s + j, _mm512_or_ps(capped, sign));
  }
}

/// Sets a row's scores to -inf outside columns [n_hidden, n_visible) (up to n_cols, and up to 31
/// after them). Returns the maximum of the others and `max`.
SNAPKV_BF16_INLINE float mask_and_max(float* s, int n_hidden, int n_visible, int n_cols,
                                      float max) {
  if (n_hidden >= n_visible) return max;
  const float infinity = std::numeric_limits<float>::infinity();
  const int end = (n_cols + 31) / 32 * 32;
  std::fill(s, s + n_hidden, -infinity);
  for (int j = n_visible / 16 * 16; j < end; j += 16) {
    const __m512 x = _mm512_loadu_ps(s + j);
    _mm512_storeu_ps(s + j,
                     _mm512_mask_mov_ps(_mm512_set1_ps(-infinity), lane_mask(n_visible - j), x));
  }
  __m512 max0 = _mm512_set1_ps(max);
  __m512 max1 = max0;
  for (int j = 0; j < end; j += 32) {
    max0 = _mm512_max_ps(max0, _mm512_loadu_ps(s + j));
    max1 = _mm512_max_ps(max1, _mm512_loadu_ps(s + j + 16));
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(max0, max1));
}

/// Turns a row's masked scores into bf16 probabilities relative to the maximum (writes up to 31
/// after n_cols). Returns their sum.
SNAPKV_BF16_INLINE float exponentials(const float* s, int n_cols, float max, uint32_t* p) {
  const int end = (n_cols + 31) / 32 * 32;
  const __m512 m = _mm512_set1_ps(max);
  __m512 sum0 = _mm512_setzero_ps();
  __m512 sum1 = _mm512_setzero_ps();
  for (int j = 0; j < end; j += 32) {
    const __m512 p0 = exp2_nonpositive(_mm512_sub_ps(_mm512_loadu_ps(s + j), m));
    const __m512 p1 = exp2_nonpositive(_mm512_sub_ps(_mm512_loadu_ps(s + j + 16), m));
    sum0 = _mm512_add_ps(sum0, p0);
    sum1 = _mm512_add_ps(sum1, p1);
    _mm512_storeu_si512(p + j / 2, as_pairs(_mm512_cvtne2ps_pbh(p1, p0)));
  }
  return _mm512_reduce_add_ps(_mm512_add_ps(sum0, sum1));
}

/// The softmax of kRowGroup rows at `row`: turns scores [kRowGroup, ld] of the columns first ...
/// first + n - 1 into probabilities [kRowGroup, ld / 2], and sets the factors of what was
/// accumulated so far. All maxima are computed before the exponentials, which would otherwise wait
/// for them row by row.
SNAPKV_BF16_INLINE void softmax_rows(const QueryRows& rows, int row, int first, int n, float* s,
                                     uint32_t* p, int64_t ld, float* factor) {
  const float infinity = std::numeric_limits<float>::infinity();
  float max[kRowGroup];
  for (int i = 0; i < kRowGroup; ++i) {
    if (rows.softcap > 0.0f) cap_scores(s + i * ld, n, rows.softcap);
    max[i] = mask_and_max(s + i * ld, std::max(0, rows.n_hidden[row + i] - first),
                          rows.n_visible[row + i] - first, n, rows.max[row + i]);
  }
  for (int i = 0; i < kRowGroup; ++i) {
    factor[i] = 1.0f;
    uint32_t* probabilities = p + i * ld / 2;
    if (std::max(first, rows.n_hidden[row + i]) >= rows.n_visible[row + i]) {
      // the row sees nothing here, so its state stays
      std::fill(probabilities, probabilities + (n + 31) / 32 * 16, 0u);
      continue;
    }
    const float sum = exponentials(s + i * ld, n, max[i], probabilities);
    float& before = rows.max[row + i];
    if (before != max[i]) factor[i] = before == -infinity ? 0.0f : std::exp2(before - max[i]);
    rows.sum[row + i] = rows.sum[row + i] * factor[i] + sum;
    before = max[i];
  }
}

SNAPKV_BF16 void attend(const QueryRows& rows, const void* k, const void* v, int n_cols,
                        void* scratch) {
  const int64_t ld = (n_cols + 63) / 64 * 64 + 16;
  float* s = static_cast<float*>(scratch);                        // [kRowGroup, ld]
  uint32_t* p = reinterpret_cast<uint32_t*>(s + kRowGroup * ld);  // [kRowGroup, ld / 2]
  const int width = padded_dim(rows.value_dim);
  const int n_pairs = rows.head_dim / 2;
  const int64_t block_pairs = (n_cols + 1) / 2;
  for (int r = 0; r < rows.n_rows; r += kRowGroup) {
    const GroupColumns columns(rows, r, kPanel);
    const int first = columns.begin, n = columns.end - first;
    if (n <= 0) continue;
    const uint32_t* q = static_cast<const uint32_t*>(rows.q) + static_cast<int64_t>(r) * n_pairs;
    for (int j = 0; j < n; j += kPanel) {
      multiply_panel(q, n_pairs, static_cast<const uint32_t*>(k) + (first + j) * n_pairs, kPanel,
                     n_pairs, nullptr, s + j, ld, (std::min(n - j, kPanel) + 15) / 16);
    }
    float factor[kRowGroup];
    softmax_rows(rows, r, first, n, s, p, ld, factor);
    float* acc = rows.acc + static_cast<int64_t>(r) * width;
    for (int i = 0; i < width; i += kPanel) {
      const int panel_width = std::min(width - i, kPanel);
      const uint32_t* values = static_cast<const uint32_t*>(v) + i * block_pairs;
      multiply_panel(p, ld / 2, values + first / 2 * panel_width, panel_width, (n + 1) / 2,
                     rows.first ? nullptr : factor, acc + i, width, panel_width / 16);
    }
  }
}

SNAPKV_BF16 void store(const float* acc, int value_dim, float factor, DType dtype, void* dst) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int i = 0; i < value_dim; i += 16) {
    const __mmask16 mask = lane_mask(value_dim - i);
    const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, acc + i), f);
    if (dtype == DType::f32) {
      _mm512_mask_storeu_ps(static_cast<float*>(dst) + i, mask, x);
    } else {
      const __m512i both = as_pairs(_mm512_cvtne2ps_pbh(x, x));
      _mm256_mask_storeu_epi16(static_cast<uint16_t*>(dst) + i, mask, _mm512_castsi512_si256(both));
    }
  }
}

}  // namespace

const TileKernels& bf16_tile_kernels() {
  static constexpr TileKernels kKernels = {sizeof(uint16_t), pack_q, pack_k,  pack_v,
                                           attend,           store,  nullptr, nullptr};
  return kKernels;
}

}  // namespace snapkv::cpu

#endif  // __x86_64__
