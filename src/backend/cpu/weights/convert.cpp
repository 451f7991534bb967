// SPDX-License-Identifier: MIT
#include "backend/cpu/weights/convert.h"

#include "backend/cpu/target/highway_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/weights/convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backend/cpu/weights/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace snapkv::cpu {
namespace HWY_NAMESPACE {
namespace {  // other files have functions of the same names

template <DType T, typename Out>
void convert(const void* src, int64_t n, Out* HWY_RESTRICT dst) {
  const F32 d;
  int64_t i = 0;
  for (; i + kBlockSize <= n; i += kBlockSize) {
    decode_32<T>(d, src, i, [=](int k, VF v) HWY_ATTR { store_as(d, v, dst + i + k); });
  }
  if constexpr (block_size(T) == 1) {
    for (; i < n; ++i) dst[i] = from_f32<Out>(decode_one<T>(src, i));
  }
}

template <typename Out>
void convert_any(const void* src, DType type, int64_t n, Out* dst) {
  visit_weight_type(type, [=](auto t) { convert<t.dtype>(src, n, dst); });
}
void convert_to_f32(const void* src, DType type, int64_t n, float* dst) {
  convert_any(src, type, n, dst);
}
void convert_to_bf16(const void* src, DType type, int64_t n, bf16_t* dst) {
  convert_any(src, type, n, dst);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace snapkv::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snapkv::cpu {

HWY_EXPORT(convert_to_f32);
HWY_EXPORT(convert_to_bf16);

void convert_row(const void* src, DType type, int64_t n, float* dst) {
  HWY_DYNAMIC_DISPATCH(convert_to_f32)(src, type, n, dst);
}
void convert_row(const void* src, DType type, int64_t n, bf16_t* dst) {
  HWY_DYNAMIC_DISPATCH(convert_to_bf16)(src, type, n, dst);
}

}  // namespace snapkv::cpu
#endif  // HWY_ONCE
