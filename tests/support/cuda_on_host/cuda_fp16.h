// SPDX-License-Identifier: MIT
// CUDA's half precision, on the host: see host_device.h.
#pragma once

#include "base/half.h"
#include "tests/support/cuda_on_host/cuda_runtime.h"

struct __half {
  snapkv::f16_t value;
};
struct alignas(4) __half2 {
  __half x, y;
};
using half = __half;
using half2 = __half2;
inline float __half2float(__half v) { return snapkv::to_f32(v.value); }
inline __half __float2half(float v) { return {snapkv::to_f16(v)}; }
inline __half __float2half_rn(float v) { return {snapkv::to_f16(v)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half(x), __float2half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
inline float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
inline float __low2float(__half2 v) { return __half2float(v.x); }
inline float __high2float(__half2 v) { return __half2float(v.y); }
inline __half __ushort_as_half(unsigned short v) { return {snapkv::f16_t{v}}; }
inline unsigned short __half_as_ushort(__half v) { return v.value.bits; }
