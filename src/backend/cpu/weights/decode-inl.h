// SPDX-License-Identifier: MIT
// Highway: converts weight rows of any type to f32 vectors, and f32 vectors to bf16. Include only
// inside the foreach_target mechanism.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cpu/target/simd_math-inl.h"
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
struct ElementOf;  // element type of a row that is not quantized
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

/// Value i of a row that is not quantized.
template <DType T>
HWY_INLINE float decode_one(const void* row, int64_t i) {
  return to_f32(static_cast<const typename ElementOf<T>::Scalar*>(row)[i]);
}

/// Loads a block's f16 scale into all lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_scale(D d, const void* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  const hn::Rebind<uint16_t, D> du;
  return promote_f16(d, hn::Set(du, bits));
}

/// Loads the scale of the block of 32 values at p.
template <DType T, class D>
HWY_INLINE hn::Vec<D> load_block_scale(D d, const char* p) {
  if constexpr (T == DType::mxfp4) {
    return hn::Set(d, BlockMXFP4::scale(static_cast<uint8_t>(*p)));
  } else {
    return load_scale(d, p + kScaleAt<T>);
  }
}

/// Loads the scale of the superblock at p.
template <DType T, class D>
HWY_INLINE hn::Vec<D> load_superblock_scale(D d, const char* p) {
  if constexpr (kHasF16Scale<T>) {
    const auto scale = load_scale(d, p + kScaleAt<T>);
    return kScaleUnit<T> == 1.0f ? scale : hn::Mul(scale, hn::Set(d, kScaleUnit<T>));
  } else {
    return hn::Set(d, reinterpret_cast<const Block<T>*>(p)->scale());
  }
}

/// 1 << i for lane i, as far as V reaches. (Highway 1.0.3's Shl does not compile for SSSE3.)
template <typename V>
struct BitOfLane {
  alignas(64) V at[16];
  constexpr BitOfLane() : at() {
    for (int i = 0; i < 16; ++i) at[i] = static_cast<V>(1u << i);
  }
};
template <typename V>
constexpr BitOfLane<V> kBitOfLane{};

/// Calls f(k, q) for the nibbles of 16 bytes: the low nibbles are values 0 ... 15, the high ones 16
/// ... 31.
template <class D, class F>
HWY_INLINE void decode_nibbles(D d, const char* p, F&& f) {
  const hn::Rebind<uint8_t, D> d8;
  for (int k = 0; k < kBlockSize / 2; k += static_cast<int>(hn::Lanes(d))) {
    const auto bytes = hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(p) + k));
    f(k, hn::And(bytes, hn::Set(d, hn::TFromD<D>{15})));
    f(k + kBlockSize / 2, hn::ShiftRight<4>(bytes));
  }
}

/// Looks up each lane's index in an aligned table of 16 bytes.
template <class D>
HWY_INLINE hn::Vec<D> look_up(D d, const int8_t* table, hn::Vec<D> index) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, static_cast<hn::TFromD<D>>(table[hn::GetLane(index)]));
#else
  const hn::Rebind<uint8_t, D> d8;
  const hn::RebindToSigned<decltype(d8)> di8;
  const auto entries = hn::Load(hn::FixedTag<int8_t, 16>(), table);
  return hn::PromoteTo(d, hn::BitCast(di8, hn::TableLookupBytes(entries, hn::DemoteTo(d8, index))));
#endif
}

/// Calls f(k, q) for the 32 levels whose nibbles are the 16 bytes at p, as nvfp4 has them.
template <class D, class F>
HWY_INLINE void decode_half_nibbles(D d, const char* p, F&& f) {
  HWY_ALIGN int8_t levels[kBlockSize];
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < kBlockSize; ++i) {
    const int nibbles = static_cast<uint8_t>(p[i / 16 * 8 + i % 8]);
    levels[i] = BlockMXFP4::kLevels[nibbles >> (i / 8 % 2 * 4) & 15];
  }
#else
  const hn::FixedTag<uint8_t, 16> d8;
  const hn::FixedTag<int8_t, 16> di8;
  const auto table = hn::Load(di8, BlockMXFP4::kLevels);
  const auto bytes = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(p));
  const auto from_nibbles = [=](hn::Vec<decltype(d8)> nibbles) HWY_ATTR {
    return hn::BitCast(di8, hn::TableLookupBytes(table, nibbles));
  };
  const auto low = from_nibbles(hn::And(bytes, hn::Set(d8, 15)));
  const auto high = from_nibbles(hn::ShiftRight<4>(bytes));
  hn::Store(hn::ConcatLowerLower(di8, high, low), di8, levels);
  hn::Store(hn::ConcatUpperUpper(di8, high, low), di8, levels + 16);
#endif
  const hn::Rebind<int8_t, D> dn;
  for (int k = 0; k < kBlockSize; k += static_cast<int>(hn::Lanes(d))) {
    f(k, hn::PromoteTo(d, hn::LoadU(dn, levels + k)));
  }
}

/// Calls f(k, q) for the vectors q of 32 levels, as integers of D's type; k is the offset of q's
/// first level. They are the levels of the block at p, or of part `part` of the larger one at p. A
/// level is what the block's scale multiplies; levels begin at 0 if there is a minimum (kHasMin).
template <DType T, class D, class F>
HWY_INLINE void decode_levels(D d, const char* p, int part, F&& f) {
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  using V = hn::TFromD<D>;
  const auto load = [=](size_t at) HWY_ATTR {
    const hn::Rebind<uint8_t, D> d8;
    return hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(p) + at));
  };
  const auto low_bits = hn::Set(d, V{15});
  if constexpr (T == DType::q8_0) {
    const hn::Rebind<int8_t, D> d8;
    for (int k = 0; k < kBlockSize; k += n_lanes) {
      f(k, hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const int8_t*>(p) + 2 + k)));
    }
  } else if constexpr (kHasPartWords<T>) {
    const LevelWords words = reinterpret_cast<const Block<T>*>(p)->part_words(part);
    const hn::Rebind<int8_t, D> d8;
    for (int k = 0; k < kBlockSize; k += n_lanes) {
      f(k, hn::PromoteTo(d, hn::LoadU(d8, reinterpret_cast<const int8_t*>(words.data()) + k)));
    }
  } else if constexpr (T == DType::q4_0) {
    decode_nibbles(d, p + offsetof(BlockQ4_0, qs),
                   [&](int k, hn::Vec<D> q) HWY_ATTR { f(k, hn::Sub(q, hn::Set(d, V{8}))); });
  } else if constexpr (T == DType::q4_1) {
    decode_nibbles(d, p + offsetof(BlockQ4_1, qs), f);
  } else if constexpr (T == DType::q5_0 || T == DType::q5_1) {
    uint32_t high_bits;
    std::memcpy(&high_bits, p + offsetof(Block<T>, qh), sizeof(high_bits));
    const auto bit_of_lane = hn::Load(d, kBitOfLane<V>.at);
    const uint32_t lanes = static_cast<uint32_t>((uint64_t{1} << n_lanes) - 1);
    decode_nibbles(d, p + offsetof(Block<T>, qs), [&](int k, hn::Vec<D> q) HWY_ATTR {
      const auto bits = hn::Set(d, static_cast<V>(high_bits >> k & lanes));
      const auto is_set = hn::Ne(hn::And(bits, bit_of_lane), hn::Zero(d));
      const auto high = hn::Set(d, V{16});
      if constexpr (T == DType::q5_0) {
        f(k, hn::Sub(q, hn::IfThenZeroElse(is_set, high)));  // values below 16: minus 16
      } else {
        f(k, hn::Or(q, hn::IfThenElseZero(is_set, high)));
      }
    });
  } else if constexpr (T == DType::iq4_nl || T == DType::mxfp4) {
    decode_nibbles(d, p + offsetof(Block<T>, qs),
                   [&](int k, hn::Vec<D> q) HWY_ATTR { f(k, look_up(d, Block<T>::kLevels, q)); });
  } else if constexpr (T == DType::nvfp4) {
    decode_half_nibbles(d, p + offsetof(BlockNVFP4, qs) + part * 16, f);
  } else if constexpr (T == DType::iq4_xs) {
    decode_nibbles(d, p + offsetof(BlockIQ4_XS, qs) + part * 16, [&](int k, hn::Vec<D> q) HWY_ATTR {
      f(k, look_up(d, BlockIQ4_NL::kLevels, q));
    });
  } else if constexpr (T == DType::q2_k || T == DType::q3_k) {
    for (int k = 0; k < kBlockSize; k += n_lanes) {
      const auto fours = load(offsetof(Block<T>, qs) + static_cast<size_t>(part / 4 * 32 + k));
      auto q = hn::And(hn::ShiftRightSame(fours, part % 4 * 2), hn::Set(d, V{3}));
      if constexpr (T == DType::q3_k) {
        const auto bits = load(offsetof(BlockQ3_K, hmask) + static_cast<size_t>(k));
        const auto bit = hn::And(hn::ShiftRightSame(bits, part), hn::Set(d, V{1}));
        q = hn::Sub(hn::Or(q, hn::ShiftLeft<2>(bit)), hn::Set(d, V{4}));
      }
      f(k, q);
    }
  } else if constexpr (T == DType::q4_k || T == DType::q5_k) {
    for (int k = 0; k < kBlockSize; k += n_lanes) {
      const size_t at = offsetof(Block<T>, qs) + static_cast<size_t>(part / 2 * 32 + k);
      auto q = hn::And(hn::ShiftRightSame(load(at), part % 2 * 4), low_bits);
      if constexpr (T == DType::q5_k) {
        const auto bits = load(offsetof(BlockQ5_K, qh) + static_cast<size_t>(k));
        const auto bit = hn::And(hn::ShiftRightSame(bits, part), hn::Set(d, V{1}));
        q = hn::Or(q, hn::ShiftLeft<4>(bit));
      }
      f(k, q);
    }
  } else {
    static_assert(T == DType::q6_k);
    for (int k = 0; k < kBlockSize; k += n_lanes) {
      const auto nibbles = load(static_cast<size_t>(part / 4 * 64 + part % 2 * 32 + k));
      const auto low = hn::And(hn::ShiftRightSame(nibbles, part % 4 / 2 * 4), low_bits);
      const auto bits = load(offsetof(BlockQ6_K, qh) + static_cast<size_t>(part / 4 * 32 + k));
      const auto high = hn::And(hn::ShiftRightSame(bits, part % 4 * 2), hn::Set(d, V{3}));
      f(k, hn::Sub(hn::Or(low, hn::ShiftLeft<4>(high)), hn::Set(d, V{32})));
    }
  }
}

/// Calls f(k, v) for the values of part `part` of the nvfp4 block at p.
template <class D, class F>
HWY_INLINE void decode_nvfp4_part(D d, const char* p, int part, F&& f) {
  const hn::Rebind<int32_t, D> di;
  const uint8_t* scales = reinterpret_cast<const BlockNVFP4*>(p)->scales + 2 * part;
  const auto first = hn::Set(d, BlockNVFP4::scale(scales[0]));
  const auto last = hn::Set(d, BlockNVFP4::scale(scales[1]));
  decode_levels<DType::nvfp4>(di, p, part, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
    f(k, hn::Mul(hn::ConvertTo(d, q), k < 16 ? first : last));
  });
}

/// decode_32() for the superblock types.
template <DType T, class D, class F>
HWY_INLINE void decode_part(D d, const char* p, int part, F&& f) {
  const hn::Rebind<int32_t, D> di;
  const auto scale = load_superblock_scale<T>(d, p);
  const auto scales = reinterpret_cast<const Block<T>*>(p)->unpack_scales();
  const auto scaled = [=](int level_scale) HWY_ATTR {
    return hn::Mul(scale, hn::Set(d, static_cast<float>(level_scale)));
  };
  const auto first = scaled(scales.scale(part, 0)), last = scaled(scales.scale(part, 1));
  if constexpr (kHasMin<T>) {
    const auto dmin = load_scale(d, p + kMinAt<T>);
    const auto first_min = hn::Mul(dmin, hn::Set(d, static_cast<float>(scales.min(part, 0))));
    const auto last_min = hn::Mul(dmin, hn::Set(d, static_cast<float>(scales.min(part, 1))));
    decode_levels<T>(di, p, part, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
      f(k, hn::MulSub(hn::ConvertTo(d, q), k < 16 ? first : last, k < 16 ? first_min : last_min));
    });
  } else {
    decode_levels<T>(di, p, part, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
      f(k, hn::Mul(hn::ConvertTo(d, q), k < 16 ? first : last));
    });
  }
}

/// Calls f(k, v) for the vectors v of values [i, i + 32) of a row, where i is a multiple of 32 and
/// k is the offset of v's first value from i. Always inlined: f accumulates in registers.
template <DType T, class D, class F>
HWY_INLINE void decode_32(D d, const void* row, int64_t i, F&& f) {
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  const hn::Rebind<int32_t, D> di;
  if constexpr (block_size(T) == 1) {
    const auto* p = static_cast<const typename ElementOf<T>::Vector*>(row) + i;
    for (int k = 0; k < kBlockSize; k += n_lanes) f(k, load_f32(d, p + k));
  } else if constexpr (block_size(T) == kBlockSize) {
    const char* block = static_cast<const char*>(row) + row_bytes(T, i);
    const auto scale = load_block_scale<T>(d, block);
    if constexpr (kHasMin<T>) {
      const auto m = load_scale(d, block + kMinAt<T>);
      decode_levels<T>(di, block, 0, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
        f(k, hn::MulAdd(hn::ConvertTo(d, q), scale, m));
      });
    } else {
      decode_levels<T>(di, block, 0, [&](int k, hn::Vec<decltype(di)> q) HWY_ATTR {
        f(k, hn::Mul(hn::ConvertTo(d, q), scale));
      });
    }
  } else if constexpr (T == DType::nvfp4) {
    constexpr int64_t kValues = block_size(T);
    decode_nvfp4_part(d, static_cast<const char*>(row) + row_bytes(T, i),
                      static_cast<int>(i % kValues / kBlockSize), f);
  } else {
    decode_part<T>(d, static_cast<const char*>(row) + row_bytes(T, i),
                   static_cast<int>(i % kSuperblockSize / kBlockSize), f);
  }
}

/// Rounds to nearest even. In a register a bf16 is the upper half of an f32.
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
