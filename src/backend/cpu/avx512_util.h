// SPDX-License-Identifier: MIT
// For files with AVX intrinsics. Included by gemv_avx512.h, gemv_int8_avx2.cpp,
// attention_tile_bf16.cpp and pack_avx512.cpp.
#pragma once

// GCC 12's AVX-512 intrinsics warn of their own deliberately undefined vectors (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

// Before a loop with few constant steps, so that arrays of vectors stay in registers.
#if defined(__clang__)
#define SNAPKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SNAPKV_UNROLL _Pragma("GCC unroll 16")
#endif
