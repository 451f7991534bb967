// SPDX-License-Identifier: MIT
// Highway: the values of weight rows of any type as f32 vectors, and f32 vectors as bf16. Included
// by convert.cpp, gemv_f32.cpp and rowwise.cpp inside the foreach_target mechanism only.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cpu/simd_math-inl.h"
#include "backend/cpu/superblock.h"
#include "base/half.h"
#include "format/block_types.h"
#include "snapkv/dtype.h"

#if defined(SNAPKV_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SNAPKV_DECODE_INL_H_
#undef SNAPKV_DECODE_INL_H_
#else
#define SNAPKV_DECODE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {

template <DType T>
struct ElementOf;  // what a pointer into a row of a plain type points to
template <>
struct ElementOf<DType::f32> {
  using Vector = float;
  using Scalar = float;
};
template <>
struct ElementOf<DType::f16> {
  using Vector = hwy::float16_t;
  using Scalar = f16_t;
};
template <>
struct ElementOf<DType::bf16> {
  using Vector = hwy::bfloat16_t;
  using Scalar = bf16_t;
};

/// Value i of a row of a plain type.
template <DType T>
HWY_INLINE float decode_one(const void* row, int64_t i) {
  return to_f32(static_cast<const typename ElementOf<T>::Scalar*>(row)[i]);
}

/// A block's f16 scale in all lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_scale(D d, const void* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  const hn::Rebind<uint16_t, D> du;
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::BitCast(dh, hn::Set(du, bits)));
}

/// Calls f(k, q) for the vectors q of a superblock part's 32 levels as integers of D's type, k the
/// offset of q's first. T is q4_k, q5_k or q6_k (levels then -32 ... 31), p the superblock.
template <DType T, class D, class F>
HWY_INLINE void decode_levels(D d, const char* p, int part, F&& f) {
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  const hn::Rebind<uint8_t, D> d8;
  using V = hn::TFromD<D>;
  const auto load = [=](size_t at) HWY_ATTR {
    return hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(p) + at));
  };
  const size_t group = static_cast<size_t>(part / 4), half = static_cast<size_t>(part % 2);
  for (int k = 0; k < kBlockSize; k += n_lanes) {
    const auto i = static_cast<size_t>(k);
    if constexpr (T == DType::q6_k) {
      const auto low = hn::ShiftRightSame(load(64 * group + 32 * half + i), part % 4 / 2 * 4);
      const auto high =
          hn::ShiftRightSame(load(offsetof(BlockQ6_K, qh) + 32 * group + i), part % 4 * 2);
      const auto q = hn::Or(hn::And(low, hn::Set(d, V{15})),
                            hn::ShiftLeft<4>(hn::And(high, hn::Set(d, V{3}))));
      f(k, hn::Sub(q, hn::Set(d, V{32})));
    } else {
      using Block = std::conditional_t<T == DType::q4_k, BlockQ4_K, BlockQ5_K>;
      const size_t pair = static_cast<size_t>(part / 2);
      const auto nibbles = load(offsetof(Block, qs) + 32 * pair + i);
      auto q = hn::And(hn::ShiftRightSame(nibbles, part % 2 * 4), hn::Set(d, V{15}));
      if constexpr (T == DType::q5_k) {
        const auto bit = hn::ShiftRightSame(load(offsetof(BlockQ5_K, qh) + i), part);
        q = hn::Or(q, hn::ShiftLeft<4>(hn::And(bit, hn::Set(d, V{1}))));
      }
      f(k, q);
    }
  }
}

/// decode_32() of the superblock types.
template <DType T, class D, class F>
HWY_INLINE void decode_part(D d, const char* p, int part, F&& f) {
  const hn::Rebind<int32_t, D> di;
  if constexpr (T == DType::q6_k) {
    const auto scale = load_scale(d, p + offsetof(BlockQ6_K, d));
    const auto* scales =
        reinterpret_cast<const int8_t*>(p + offsetof(BlockQ6_K, scales)) + 2 * part;
    decode_levels<T>(di, p, part, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
      f(k, hn::Mul(hn::ConvertTo(d, q), hn::Mul(scale, hn::Set(d, scales[k / 16]))));
    });
  } else {
    const PartBytes parts = unpack_scales(p);
    const auto scale = hn::Mul(load_scale(d, p), hn::Set(d, static_cast<float>(parts.scale(part))));
    const auto min = hn::Mul(load_scale(d, p + offsetof(PartScales, dmin)),
                             hn::Set(d, static_cast<float>(parts.min(part))));
    decode_levels<T>(di, p, part, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
      f(k, hn::MulSub(hn::ConvertTo(d, q), scale, min));
    });
  }
}

/// Calls f(k, v) for the vectors v of values [i, i + 32) of a row, k the offset of v's first value
/// from i; i is a multiple of 32. Always inlined: f accumulates in registers.
template <DType T, class D, class F>
HWY_INLINE void decode_32(D d, const void* row, int64_t i, F&& f) {
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  const hn::Rebind<int32_t, D> di;
  if constexpr (T == DType::q8_0) {
    const char* block = static_cast<const char*>(row) + i / kBlockSize * sizeof(BlockQ8_0);
    const auto scale = load_scale(d, block);
    const hn::Rebind<int8_t, D> d8;
    for (int k = 0; k < kBlockSize; k += n_lanes) {
      const auto q = hn::LoadU(d8, reinterpret_cast<const int8_t*>(block + 2) + k);
      f(k, hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, q)), scale));
    }
  } else if constexpr (T == DType::q4_0) {
    const char* block = static_cast<const char*>(row) + i / kBlockSize * sizeof(BlockQ4_0);
    const auto scale = load_scale(d, block);
    const hn::Rebind<uint8_t, D> d8;
    const auto eight = hn::Set(di, 8);
    const auto low_bits = hn::Set(di, 15);
    for (int k = 0; k < kBlockSize / 2; k += n_lanes) {
      const auto bytes = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(block + 2) + k);
      const auto q = hn::PromoteTo(di, bytes);
      const auto low = hn::Sub(hn::And(q, low_bits), eight);
      const auto high = hn::Sub(hn::ShiftRight<4>(q), eight);
      f(k, hn::Mul(hn::ConvertTo(d, low), scale));
      f(k + kBlockSize / 2, hn::Mul(hn::ConvertTo(d, high), scale));
    }
  } else if constexpr (block_size(T) == kSuperblockSize) {
    decode_part<T>(d, static_cast<const char*>(row) + row_bytes(T, i),
                   static_cast<int>(i % kSuperblockSize / kBlockSize), f);
  } else {
    const auto* p = static_cast<const typename ElementOf<T>::Vector*>(row) + i;
    for (int k = 0; k < kBlockSize; k += n_lanes) f(k, load_f32(d, p + k));
  }
}

/// Rounds to nearest even; in registers a bf16 is the upper half of an f32.
template <class D>
HWY_INLINE void store_bf16(D d, hn::Vec<D> x, bf16_t* dst) {
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<uint16_t, D> dh;
  const auto bits = hn::ShiftRight<16>(hn::BitCast(du, round_bf16(d, x)));
  hn::StoreU(hn::TruncateTo(dh, bits), dh, reinterpret_cast<uint16_t*>(dst));
}
template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> x, bf16_t* dst) {
  store_bf16(d, x, dst);
}
template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> x, float* dst) {
  hn::StoreU(x, d, dst);
}

}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
