// SPDX-License-Identifier: MIT
// CUDA's bfloat16, on the host: see host_device.h.
#pragma once

#include "base/half.h"
#include "tests/support/cuda_on_host/cuda_runtime.h"

struct __nv_bfloat16 {
  snapkv::bf16_t value;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 v) { return snapkv::to_f32(v.value); }
inline __nv_bfloat16 __float2bfloat16(float v) { return {snapkv::to_bf16(v)}; }
inline __nv_bfloat16 __float2bfloat16_rn(float v) { return {snapkv::to_bf16(v)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16(x), __float2bfloat16(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
inline float2 __bfloat1622float2(__nv_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) {
  const float2 x = __bfloat1622float2(a), y = __bfloat1622float2(b);
  return __floats2bfloat162_rn(x.x - y.x, x.y - y.y);
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { return {snapkv::bf16_t{v}}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.value.bits; }
