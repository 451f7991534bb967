// SPDX-License-Identifier: MIT
// Helpers for files with AVX intrinsics.
#pragma once

// GCC 12's AVX-512 intrinsics cause warnings about their own, deliberately undefined vectors (GCC
// bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

// Unrolls a loop with few constant steps, so that arrays of vectors stay in registers.
#if defined(__clang__)
#define SNAPKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SNAPKV_UNROLL _Pragma("GCC unroll 16")
#endif
