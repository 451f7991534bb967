// SPDX-License-Identifier: MIT
// transpose(): 16 vectors of 16 words.
#pragma once

#if defined(__x86_64__)

#include "backend/cpu/target/avx512_util.h"

namespace snapkv::cpu::avx512 {

/// v[k] word r = v[r] word k.
__attribute__((target("avx512f"), always_inline)) inline void transpose(__m512i (&v)[16]) {
  __m512i t[16];
  SNAPKV_UNROLL for (int r = 0; r < 16; r += 2) {  // pairs of rows
    t[r] = _mm512_unpacklo_epi32(v[r], v[r + 1]);
    t[r + 1] = _mm512_unpackhi_epi32(v[r], v[r + 1]);
  }
  SNAPKV_UNROLL for (int r = 0; r < 16; r += 4) {  // v[r + k]: words k of 4 rows, 4 times
    v[r] = _mm512_unpacklo_epi64(t[r], t[r + 2]);
    v[r + 1] = _mm512_unpackhi_epi64(t[r], t[r + 2]);
    v[r + 2] = _mm512_unpacklo_epi64(t[r + 1], t[r + 3]);
    v[r + 3] = _mm512_unpackhi_epi64(t[r + 1], t[r + 3]);
  }
  SNAPKV_UNROLL for (int k = 0; k < 4; ++k) {  // moves quarters of 128 bits into place
    const __m512i a = _mm512_shuffle_i32x4(v[k], v[4 + k], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(v[k], v[4 + k], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(v[8 + k], v[12 + k], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(v[8 + k], v[12 + k], 0xdd);
    t[k] = _mm512_shuffle_i32x4(a, c, 0x88);
    t[8 + k] = _mm512_shuffle_i32x4(a, c, 0xdd);
    t[4 + k] = _mm512_shuffle_i32x4(b, d, 0x88);
    t[12 + k] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  SNAPKV_UNROLL for (int k = 0; k < 16; ++k) v[k] = t[k];
}

}  // namespace snapkv::cpu::avx512

#endif  // x86-64
