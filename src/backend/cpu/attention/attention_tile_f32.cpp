// SPDX-License-Identifier: MIT
// Attention tiles in f32 (Highway). With RoundBf16, inputs and probabilities are first rounded to
// bf16: the results of attention_tile_bf16.cpp on processors without its instructions.
//
// Layouts: q [n_rows, head_dim]; K in panels of kPanel columns, [panel][head_dim][kPanel], with
// zeros in the last panel's unused columns; V [n_rows, padded_dim].
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/attention/attention_tile.h"
#include "backend/cpu/target/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/attention/attention_tile_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/target/simd_math-inl.h"
#include "backend/cpu/weights/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

// kRowGroup x kVectors accumulators, kVectors operands and a broadcast fit into the registers.
// (Without SIMD there is no such limit, but packing needs at least 4 columns.)
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_SCALAR
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif
constexpr int kPanel = kVectors * hn::MaxLanes(F32());
static_assert(kPanel % 4 == 0 && kPanel <= 64);

template <bool RoundBf16, class D>
HWY_INLINE hn::Vec<D> maybe_round(D d, hn::Vec<D> x) {
  if constexpr (RoundBf16) {
    return round_bf16(d, x);
  } else {
    return x;
  }
}

template <bool RoundBf16>
void pack_q(const float* HWY_RESTRICT q, int head_dim, float scale, void* dst_) {
  float* HWY_RESTRICT dst = static_cast<float*>(dst_);
  const hn::CappedTag<float, 8> d;  // head_dim is a multiple of 8
  for (int i = 0; i < head_dim; i += hn::Lanes(d)) {
    hn::StoreU(maybe_round<RoundBf16>(d, hn::LoadU(d, q + i) * hn::Set(d, scale)), d, dst + i);
  }
}

/// dst[i * kPanel + c] = rows[c][i] for 4 columns c and 4 values i.
template <bool RoundBf16, typename T>
HWY_INLINE void transpose_4x4(const T* const rows[4], float* HWY_RESTRICT dst) {
#if HWY_TARGET == HWY_SCALAR
  const hn::CappedTag<float, 1> d;
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 4; ++i) {
      hn::StoreU(maybe_round<RoundBf16>(d, load_f32(d, rows[c] + i)), d, dst + i * kPanel + c);
    }
  }
#else
  const hn::Full128<float> d;
  store_transposed_4x4(d, maybe_round<RoundBf16>(d, load_f32(d, rows[0])),
                       maybe_round<RoundBf16>(d, load_f32(d, rows[1])),
                       maybe_round<RoundBf16>(d, load_f32(d, rows[2])),
                       maybe_round<RoundBf16>(d, load_f32(d, rows[3])), dst, kPanel);
#endif
}

template <bool RoundBf16, typename T>
void pack_k_typed(const KvRows& k, float* HWY_RESTRICT dst) {
  alignas(16) static constexpr float kZeros[4] = {};
  for (int begin = 0; begin < k.n_rows; begin += kPanel, dst += k.head_dim * kPanel) {
    for (int c = 0; c < kPanel; c += 4) {
      for (int i = 0; i < k.head_dim; i += 4) {
        const T* rows[4];
        for (int r = 0; r < 4; ++r) {
          const int row = begin + c + r;
          rows[r] = row < k.n_rows ? reinterpret_cast<const T*>(k.data + row * k.stride) + i
                                   : reinterpret_cast<const T*>(kZeros);
        }
        transpose_4x4<RoundBf16>(rows, dst + i * kPanel + c);
      }
    }
  }
}

template <bool RoundBf16, typename T>
void pack_v_typed(const KvRows& v, float* HWY_RESTRICT dst) {
  const hn::CappedTag<float, 8> d;
  const int width = padded_dim(v.head_dim);
  for (int row = 0; row < v.n_rows; ++row, dst += width) {
    const T* src = reinterpret_cast<const T*>(v.data + row * v.stride);
    for (int i = 0; i < v.head_dim; i += hn::Lanes(d)) {
      hn::StoreU(maybe_round<RoundBf16>(d, load_f32(d, src + i)), d, dst + i);
    }
    std::fill(dst + v.head_dim, dst + width, 0.0f);
  }
}

template <bool RoundBf16>
void pack_k(const KvRows& k, void* dst) {
  float* out = static_cast<float*>(dst);
  if (k.dtype == DType::f32) return pack_k_typed<RoundBf16, float>(k, out);
  if (k.dtype == DType::f16) return pack_k_typed<RoundBf16, hwy::float16_t>(k, out);
  pack_k_typed<RoundBf16, hwy::bfloat16_t>(k, out);
}

template <bool RoundBf16>
void pack_v(const KvRows& v, void* dst) {
  float* out = static_cast<float*>(dst);
  if (v.dtype == DType::f32) return pack_v_typed<RoundBf16, float>(v, out);
  if (v.dtype == DType::f16) return pack_v_typed<RoundBf16, hwy::float16_t>(v, out);
  pack_v_typed<RoundBf16, hwy::bfloat16_t>(v, out);
}

/// c[r, :] = scale[r] * c[r, :] + sum_i a[r, i] * b[i, :] for kRowGroup rows and C vectors of
/// columns; without `scale`, c is overwritten. Each element is one chain of fused multiply-adds in
/// the order of i, whatever the tile.
template <int C>
HWY_INLINE void multiply(const float* HWY_RESTRICT a, int64_t lda, const float* HWY_RESTRICT b,
                         int64_t ldb, int n, const float* HWY_RESTRICT scale, float* HWY_RESTRICT c,
                         int64_t ldc) {
  const F32 d;
  constexpr int kLanes = hn::MaxLanes(F32());
  VF sum[kRowGroup][C];
  for (int r = 0; r < kRowGroup; ++r) {
    for (int v = 0; v < C; ++v) {
      sum[r][v] = scale == nullptr ? hn::Zero(d)
                                   : hn::LoadU(d, c + r * ldc + v * kLanes) * hn::Set(d, scale[r]);
    }
  }
  for (int i = 0; i < n; ++i) {
    VF bv[C];
    for (int v = 0; v < C; ++v) bv[v] = hn::LoadU(d, b + i * ldb + v * kLanes);
    for (int r = 0; r < kRowGroup; ++r) {
      const VF av = hn::Set(d, a[r * lda + i]);
      for (int v = 0; v < C; ++v) sum[r][v] = hn::MulAdd(av, bv[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRowGroup; ++r) {
    for (int v = 0; v < C; ++v) hn::StoreU(sum[r][v], d, c + r * ldc + v * kLanes);
  }
}

void group_scores(const float* q, int head_dim, const float* k, int n_cols, float* s, int64_t ld) {
  for (int j = 0; j < n_cols; j += kPanel) {
    multiply<kVectors>(q, head_dim, k + static_cast<int64_t>(j) * head_dim, kPanel, head_dim,
                       nullptr, s + j, ld);
  }
}

void scores(const void* q, int n_rows, int head_dim, const void* k, int n_cols, float* s,
            int64_t ld) {
  for (int r = 0; r < n_rows; r += kRowGroup) {
    group_scores(static_cast<const float*>(q) + static_cast<int64_t>(r) * head_dim, head_dim,
                 static_cast<const float*>(k), n_cols, s + r * ld, ld);
  }
}

void cap_scores(float* s, int n, float softcap) {
  const F32 d;
  const SoftcapFactors factors(softcap);
  for (int j = 0; j < n; j += hn::Lanes(d)) {
    hn::StoreU(cap_score(d, hn::LoadU(d, s + j), factors), d, s + j);
  }
}

/// Turns one row of scores into probabilities relative to the new maximum, in place; columns before
/// n_hidden and from n_visible to n_cols become 0. Returns the factor of what was accumulated so
/// far.
template <bool RoundBf16>
HWY_INLINE float softmax_row(float* HWY_RESTRICT s, int n_hidden, int n_visible, int n_cols,
                             float& max, float& sum) {
  const F32 d;
  const int lanes = hn::Lanes(d);
  const float infinity = std::numeric_limits<float>::infinity();
  if (n_hidden >= n_visible) {  // the row sees nothing here, so its state stays
    std::fill(s, s + n_cols, 0.0f);
    return 1.0f;
  }
  std::fill(s, s + n_hidden, -infinity);
  std::fill(s + n_visible, s + (n_cols + lanes - 1) / lanes * lanes, -infinity);
  VF vmax = hn::Set(d, max);
  for (int j = 0; j < n_cols; j += lanes) vmax = hn::Max(vmax, hn::LoadU(d, s + j));
  const float new_max = hn::GetLane(hn::MaxOfLanes(d, vmax));
  VF vsum = hn::Zero(d);
  for (int j = 0; j < n_cols; j += lanes) {
    const VF p = exp2_nonpositive(d, hn::LoadU(d, s + j) - hn::Set(d, new_max));
    vsum = vsum + p;
    hn::StoreU(maybe_round<RoundBf16>(d, p), d, s + j);
  }
  const float factor = max == new_max ? 1.0f : max == -infinity ? 0.0f : std::exp2(max - new_max);
  sum = sum * factor + hn::GetLane(hn::SumOfLanes(d, vsum));
  max = new_max;
  return factor;
}

/// acc = factor * acc + p V for one group of rows; without `factor`, acc = p V.
HWY_INLINE void group_values(const float* p, int64_t ld, const float* v, int n_cols, int width,
                             const float* factor, float* acc) {
  constexpr int kLanes = hn::MaxLanes(F32());
  int i = 0;
  for (; i + kPanel <= width; i += kPanel) {
    multiply<kVectors>(p, ld, v + i, width, n_cols, factor, acc + i, width);
  }
  for (; i < width; i += kLanes) multiply<1>(p, ld, v + i, width, n_cols, factor, acc + i, width);
}

template <bool RoundBf16>
void attend(const QueryRows& rows, const void* k, const void* v, int n_cols, void* scratch) {
  float* s = static_cast<float*>(scratch);
  const int64_t ld = (n_cols + 63) / 64 * 64 + 16;
  const int width = padded_dim(rows.value_dim);
  for (int r = 0; r < rows.n_rows; r += kRowGroup) {
    const GroupColumns columns(rows, r, kPanel);
    const int first = columns.begin, n = columns.end - first;
    if (n <= 0) continue;
    group_scores(static_cast<const float*>(rows.q) + static_cast<int64_t>(r) * rows.head_dim,
                 rows.head_dim, static_cast<const float*>(k) + first * rows.head_dim, n, s, ld);
    float factor[kRowGroup];
    for (int i = 0; i < kRowGroup; ++i) {
      if (rows.softcap > 0.0f) cap_scores(s + i * ld, n, rows.softcap);
      factor[i] = softmax_row<RoundBf16>(s + i * ld, std::max(0, rows.n_hidden[r + i] - first),
                                         rows.n_visible[r + i] - first, n, rows.max[r + i],
                                         rows.sum[r + i]);
    }
    group_values(s, ld, static_cast<const float*>(v) + first * width, n, width,
                 rows.first ? nullptr : factor, rows.acc + static_cast<int64_t>(r) * width);
  }
}

void store(const float* HWY_RESTRICT acc, int value_dim, float factor, DType dtype, void* dst) {
  const hn::CappedTag<float, 8> d;  // value_dim is a multiple of 8
  for (int i = 0; i < value_dim; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, acc + i) * hn::Set(d, factor);
    if (dtype == DType::f32) {
      store_as(d, x, static_cast<float*>(dst) + i);
    } else {
      store_as(d, x, static_cast<bf16_t*>(dst) + i);
    }
  }
}

const TileKernels& table(bool round) {
  static constexpr TileKernels kExact = {sizeof(float), pack_q<false>, pack_k<false>, pack_v<false>,
                                         attend<false>, store,         scores,        cap_scores};
  static constexpr TileKernels kRounded = {sizeof(float), pack_q<true>, pack_k<true>, pack_v<true>,
                                           attend<true>,  store,        scores,       cap_scores};
  return round ? kRounded : kExact;
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(table);

const TileKernels& f32_tile_kernels(bool round_bf16) {
  return HWY_DYNAMIC_DISPATCH(table)(round_bf16);
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
