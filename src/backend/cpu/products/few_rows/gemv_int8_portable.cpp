// SPDX-License-Identifier: MIT
// 8-bit activations times weights of block types on any processor (Highway, 128-bit vectors), and
// the rounding of activations to 8 bits.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backend/cpu/products/few_rows/gemv.h"
#include "backend/cpu/products/few_rows/gemv_int8_plain.h"
#include "backend/cpu/target/cpu_target.h"
#include "backend/cpu/target/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/products/few_rows/gemv_int8_portable.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/weights/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

void prepare_unit(const float* HWY_RESTRICT x, int64_t n, void* unit_) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const int n_lanes = static_cast<int>(hn::Lanes(d));
  PlainUnit& unit = *static_cast<PlainUnit*>(unit_);
  for (int64_t b = 0; b < kPlainUnitBlocks; ++b) {
    HWY_ALIGN float values[kBlockSize] = {};
    for (int i = 0; i < kBlockSize && b * kBlockSize + i < n; ++i) {
      values[i] = x[b * kBlockSize + i];
    }
    // compares the bits of magnitudes, so that a NaN is the maximum and shows in the result
    auto max_bits = hn::Zero(di);
    for (int i = 0; i < kBlockSize; i += n_lanes) {
      max_bits = hn::Max(max_bits, hn::BitCast(di, hn::Abs(hn::Load(d, values + i))));
    }
    const int32_t bits = hn::GetLane(hn::MaxOfLanes(di, max_bits));
    float max;
    std::memcpy(&max, &bits, sizeof(max));
    const auto inverse = hn::Set(d, max > 0.0f ? 127.0f / max : 0.0f);
    for (int i = 0; i < kBlockSize; i += n_lanes) {
      const auto q = hn::NearestInt(hn::Mul(hn::Load(d, values + i), inverse));
      hn::StoreU(hn::DemoteTo(d8, q), d8, unit.q[b] + i);
    }
    int sums[2] = {};
    for (int i = 0; i < kBlockSize; ++i) sums[i / 16] += unit.q[b][i];
    unit.d[b] = max / 127.0f;
    unit.sum[b] = unit.d[b] * static_cast<float>(sums[0] + sums[1]);
    for (int h = 0; h < 2; ++h) unit.half_sums[2 * b + h] = static_cast<int16_t>(sums[h]);
  }
}

using I16 = hn::CappedTag<int16_t, 8>;
using I32 = hn::RepartitionToWide<I16>;
using F32x4 = hn::RebindToFloat<I32>;

/// decode_levels() of a superblock's part, with each level multiplied by its integer scale: at most
/// 32 * 128, which times 127, 32 times, is far below 2^31.
template <DType T, class Scales, class F>
HWY_INLINE void decode_scaled_part(const char* p, int part, const Scales& scales, F&& f) {
  const I16 d;
  const auto first = hn::Set(d, static_cast<int16_t>(scales.scale(part, 0)));
  const auto last = hn::Set(d, static_cast<int16_t>(scales.scale(part, 1)));
  decode_levels<T>(
      d, p, part, [&](int k, hn::Vec<I16> q) HWY_ATTR { f(k, hn::Mul(q, k < 16 ? first : last)); });
}

/// The activations' sums of a superblock's part, multiplied by the minima.
template <class Scales>
float part_min_sum(const PlainUnit& unit, int part, const Scales& scales) {
  const int sum = scales.min(part, 0) * unit.half_sums[2 * part] +
                  scales.min(part, 1) * unit.half_sums[2 * part + 1];
  return unit.d[part] * static_cast<float>(sum);
}

/// acc[t] += the products of the 32 values of the nvfp4 block that value 32 b of the unit is in.
/// Both halves have a sum and a scale of their own.
template <int N>
HWY_INLINE void multiply_nvfp4(const char* unit_weights, int b, const PlainUnit* const (&units)[N],
                               hn::Vec<F32x4> (&acc)[N]) {
  const I16 d;
  const I32 di;
  const F32x4 df;
  const hn::Rebind<int8_t, I16> d8;
  const auto* block = reinterpret_cast<const BlockNVFP4*>(unit_weights) + b / 2;
  hn::Vec<I32> even[2][N], odd[2][N];
  for (int half = 0; half < 2; ++half) {
    for (int t = 0; t < N; ++t) even[half][t] = odd[half][t] = hn::Zero(di);
  }
  decode_levels<DType::nvfp4>(
      d, reinterpret_cast<const char*>(block), b % 2, [&](int k, hn::Vec<I16> w) HWY_ATTR {
        for (int t = 0; t < N; ++t) {
          const auto x = hn::PromoteTo(d, hn::LoadU(d8, units[t]->q[b] + k));
          auto& sum = even[k / 16][t];
          sum = hn::ReorderWidenMulAccumulate(di, w, x, sum, odd[k / 16][t]);
        }
      });
  for (int half = 0; half < 2; ++half) {
    const float scale = BlockNVFP4::scale(block->scales[b % 2 * 2 + half]);
    for (int t = 0; t < N; ++t) {
      const auto sum = hn::ConvertTo(df, hn::Add(even[half][t], odd[half][t]));
      acc[t] = hn::MulAdd(sum, hn::Set(df, scale * units[t]->d[b]), acc[t]);
    }
  }
}

template <DType T, int N>
void multiply_n(const GemvCall& c) {
  constexpr bool kSuperblocks = block_size(T) == kSuperblockSize;
  constexpr int64_t kUnitBytes = row_bytes(T, kGemvUnit);
  const I16 d;
  const I32 di;
  const F32x4 df;
  const hn::Rebind<int8_t, I16> d8;
  const int64_t n_blocks = c.n_in / kBlockSize;
  for (int64_t row = 0; row < c.n_rows; ++row) {
    const char* unit_weights = c.w + row * c.w_stride;
    hn::Vec<F32x4> acc[N];
    for (auto& v : acc) v = hn::Zero(df);
    float min_sums[N] = {};  // added at the end
    for (int64_t first = 0; first < n_blocks; first += kPlainUnitBlocks) {
      const PlainUnit* units[N];
      for (int t = 0; t < N; ++t) units[t] = &plain_unit(c, t, first);
      [[maybe_unused]] const auto scales = [&] {
        if constexpr (kSuperblocks) {
          return reinterpret_cast<const Block<T>*>(unit_weights)->unpack_scales();
        } else {
          return 0;
        }
      }();
      [[maybe_unused]] float part_mins[N] = {};
      const int n_parts = static_cast<int>(std::min(n_blocks - first, kPlainUnitBlocks));
      for (int b = 0; b < n_parts; ++b) {
        if constexpr (T == DType::nvfp4) {
          multiply_nvfp4(unit_weights, b, units, acc);
        } else {
          hn::Vec<I32> even[N], odd[N];
          for (int t = 0; t < N; ++t) even[t] = odd[t] = hn::Zero(di);
          const auto add = [&](int k, hn::Vec<I16> w) HWY_ATTR {
            for (int t = 0; t < N; ++t) {
              const auto x = hn::PromoteTo(d, hn::LoadU(d8, units[t]->q[b] + k));
              even[t] = hn::ReorderWidenMulAccumulate(di, w, x, even[t], odd[t]);
            }
          };
          const char* block = unit_weights + (kSuperblocks ? 0 : b * block_bytes(T));
          hn::Vec<F32x4> scale;
          if constexpr (kSuperblocks) {
            decode_scaled_part<T>(block, b, scales, add);
            scale = load_superblock_scale<T>(df, block);
          } else {
            decode_levels<T>(d, block, 0, add);
            scale = load_block_scale<T>(df, block);
          }
          for (int t = 0; t < N; ++t) {
            const auto sum = hn::ConvertTo(df, hn::Add(even[t], odd[t]));
            acc[t] = hn::MulAdd(sum, hn::Mul(scale, hn::Set(df, units[t]->d[b])), acc[t]);
          }
          if constexpr (kHasMin<T> && kSuperblocks) {
            for (int t = 0; t < N; ++t) part_mins[t] -= part_min_sum(*units[t], b, scales);
          } else if constexpr (kHasMin<T>) {
            const float m = hn::GetLane(load_scale(df, block + kMinAt<T>));
            for (int t = 0; t < N; ++t) min_sums[t] += m * units[t]->sum[b];
          }
        }
      }
      if constexpr (kHasMin<T> && kSuperblocks) {
        const float dmin = hn::GetLane(load_scale(df, unit_weights + kMinAt<T>));
        for (int t = 0; t < N; ++t) min_sums[t] += dmin * part_mins[t];
      }
      unit_weights += kUnitBytes;
    }
    for (int t = 0; t < N; ++t) {
      c.sums[t * c.sums_stride + row] = hn::GetLane(hn::SumOfLanes(df, acc[t])) + min_sums[t];
    }
  }
}

template <DType T>
void multiply(const GemvCall& c) {
  GemvCall part = c;
  while (part.n > 0) {
    const int n = part.n >= 2 ? 2 : 1;
    n == 2 ? multiply_n<T, 2>(part) : multiply_n<T, 1>(part);
    part.x += n * c.x_stride;
    part.sums += n * c.sums_stride;
    part.n -= n;
  }
}

GemvFn find_multiply(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    if constexpr (block_size(type.dtype) > 1) return multiply<type.dtype>;
    return nullptr;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(prepare_unit);
HWY_EXPORT(find_multiply);

void prepare_plain_unit(const float* x, int64_t n, void* unit) {
  HWY_DYNAMIC_DISPATCH(prepare_unit)(x, n, unit);
}

const GemvKernel& gemv_int8_portable() {
  static const GemvKernel kernel{
      .name = "int8 portable",
      .unit_bytes = sizeof(PlainUnit),
      .prepare = prepare_plain_unit,
      .function = [](DType weight) { return HWY_DYNAMIC_DISPATCH(find_multiply)(weight); }};
  return kernel;
}

const GemvKernel* gemv_int8(DType weight) {
  const GemvKernel* const kernels[] = {
#if defined(__x86_64__)
    has(CpuTarget::avx512_vnni) ? &gemv_int8_vnni() : nullptr,
    has(CpuTarget::avx_vnni) ? &gemv_int8_avx_vnni() : nullptr,
    has(CpuTarget::avx_vnni) ? &gemv_int8_avx_vnni_nibbles() : nullptr,
    has(CpuTarget::avx_vnni) ? &gemv_int8_avx_vnni_k() : nullptr,
    has(CpuTarget::avx2) ? &gemv_int8_avx2() : nullptr,
    has(CpuTarget::avx2) ? &gemv_int8_avx2_nibbles() : nullptr,
    has(CpuTarget::avx2) ? &gemv_int8_avx2_k() : nullptr,
#endif
    &gemv_int8_portable()
  };
  for (const GemvKernel* kernel : kernels) {
    if (kernel != nullptr && kernel->function(weight) != nullptr) return kernel;
  }
  return nullptr;
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
