// SPDX-License-Identifier: MIT
// 8-bit activations times weights in superblocks (q2_k ... q6_k, iq4_xs, those with codebooks) with
// 256-bit vectors. A file that includes this one defines SNAPKV_256 (its functions' target) and
// add_scaled_pairs().
//
// A superblock's integer scales can stay integers to the end of its sum if the activations' scales
// are integers too: the scale of each 32 values is a multiple m of the unit's (KUnit). 16-bit sums
// of two products are multiplied by scale * m and added up in 32 bits, which are converted to f32
// once per 256 values. Bounds of a lane, with the largest levels and activations:
//   pairs   2 * 63 * 127 (q6_k), 2 * 127 * 127 (iq4_xs): no saturation at 16 bits
//   sums    8 parts * 2 pairs * 16002 * 128 * 63 = 2.07e9 (q6_k): below 2^31; others are smaller
#pragma once

namespace snapkv::cpu {
namespace {

/// Loads 8 numbers, once for each of the two rows.
SNAPKV_256_INLINE __m256i load_for_both(const int16_t* numbers) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(numbers)));
}
/// The low and the high 8 bytes of each lane, widened to 16 bits.
struct Widened {
  __m256i low, high;
};
SNAPKV_256_INLINE Widened widen(__m256i bytes) {
  const __m256i signs = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
  return {.low = _mm256_unpacklo_epi8(bytes, signs), .high = _mm256_unpackhi_epi8(bytes, signs)};
}

/// Whether activations are multiplied by numbers that are larger than the levels. The products of
/// the difference are then computed for whole parts or groups, and subtracted.
template <DType T>
constexpr bool kSubtracts = HasDeltas<T> || (HasLevelOffset<T> && T != DType::tq1_0);

/// Whether there is one scale for all parts: the ternary types.
template <DType T>
constexpr bool kIsTernary = T == DType::tq1_0 || T == DType::tq2_0;

/// Everything but the levels of two rows' superblocks, for one unit of activations. Pairs of
/// products are multiplied by scale * m, in 16 bits.
template <DType T>
struct PairFactors {
  static constexpr bool kHalves = HasHalfScales<T>;
  /// One scale per part, twice in 32 bits, where one load fills all lanes of a vector: [part /
  /// 4][row][part % 4].
  alignas(32) int32_t of_parts[2][2][4];
  /// One scale per half of a part: a row's first halves in the low 128 bits, its last halves above.
  __m256i of_halves[2];
  alignas(16) float d[4];  // d of row r in [2 * r]; with kHasMin dmin in [2 * r + 1]

  SNAPKV_256_INLINE __m256i of(int row, int part, const KUnit& x) const {
    if constexpr (kIsTernary<T>) {
      return _mm256_load_si256(reinterpret_cast<const __m256i*>(x.m_of_pairs[part]));
    } else if constexpr (kHalves) {
      const auto both_bytes = static_cast<int16_t>((2 * part + 1) << 8 | 2 * part);
      return _mm256_shuffle_epi8(of_halves[row], _mm256_set1_epi16(both_bytes));
    } else {
      return _mm256_set1_epi32(of_parts[part / 4][row][part % 4]);
    }
  }
};

/// Products of two rows' deltas of groups, with activations and with factors of half parts.
SNAPKV_256_INLINE __m256i multiply_deltas(__m256i deltas, __m256i factors,
                                          const int16_t (&group_sums)[16]) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i low =
      _mm256_madd_epi16(_mm256_unpacklo_epi8(deltas, zero), load_for_both(group_sums));
  const __m256i high =
      _mm256_madd_epi16(_mm256_unpackhi_epi8(deltas, zero), load_for_both(group_sums + 8));
  return _mm256_madd_epi16(_mm256_packs_epi32(low, high), factors);  // at most 16 * 9 * 128
}

/// The deltas of two rows' superblocks, if the type has them.
template <DType T>
SNAPKV_256_INLINE auto load_deltas(const char* p0, const char* p1) {
  if constexpr (HasDeltas<T>) {
    return X86Block<T>::pair_deltas(p0, p1);
  } else {
    return nullptr;
  }
}

/// Sets `factors`. Returns what minima, deltas or the kOffset surplus of levels contribute to the
/// products: integers in the lanes of each row.
template <DType T, typename Deltas>
SNAPKV_256_INLINE __m256i prepare_factors(const typename X86Block<T>::PairScales& scales,
                                          [[maybe_unused]] const Deltas& deltas, const KUnit& x,
                                          PairFactors<T>& factors) {
  const __m256i m = load_for_both(x.m);
  if constexpr (kIsTernary<T>) return _mm256_madd_epi16(m, load_for_both(x.sums));
  const Widened s = widen(scales.scales);
  if constexpr (HasHalfScales<T>) {
    const __m256i first = _mm256_mullo_epi16(s.low, m), last = _mm256_mullo_epi16(s.high, m);
    factors.of_halves[0] = _mm256_permute2x128_si256(first, last, 0x20);
    factors.of_halves[1] = _mm256_permute2x128_si256(first, last, 0x31);
    if constexpr (HasDeltas<T>) {
      return _mm256_add_epi32(multiply_deltas(deltas.first, first, x.group_sums[0]),
                              multiply_deltas(deltas.last, last, x.group_sums[1]));
    }
    __m256i first_mins = first, last_mins = last;
    if constexpr (kHasMin<T>) {
      const Widened mins = widen(scales.mins);
      first_mins = _mm256_mullo_epi16(mins.low, m);
      last_mins = _mm256_mullo_epi16(mins.high, m);
    }
    return _mm256_add_epi32(_mm256_madd_epi16(first_mins, load_for_both(x.half_sums[0])),
                            _mm256_madd_epi16(last_mins, load_for_both(x.half_sums[1])));
  } else {
    const __m256i w = _mm256_mullo_epi16(s.low, m);
    auto* to = reinterpret_cast<__m256i*>(factors.of_parts);
    _mm256_store_si256(to, _mm256_unpacklo_epi16(w, w));
    _mm256_store_si256(to + 1, _mm256_unpackhi_epi16(w, w));
    if constexpr (HasDeltas<T>) {
      return _mm256_madd_epi16(_mm256_mullo_epi16(w, deltas), load_for_both(x.sums));
    }
    return _mm256_madd_epi16(_mm256_mullo_epi16(s.high, m), load_for_both(x.sums));
  }
}

/// The scales and minima of load_d() where they are f16 numbers.
template <DType T>
SNAPKV_256_INLINE __m128 load_f16_d(const char* p0, const char* p1) {
  using Word = std::conditional_t<kHasMin<T>, uint32_t, uint16_t>;
  if constexpr (kHasMin<T>) static_assert(kMinAt<T> == kScaleAt<T> + 2);
  const uint64_t first = load_word<Word>(p0 + kScaleAt<T>);
  const uint64_t second = load_word<Word>(p1 + kScaleAt<T>);
  return _mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<int64_t>(first | second << 32)));
}

/// Loads the scales of two rows, and with kHasMin the minima: d0, dmin0, d1, dmin1.
template <DType T>
SNAPKV_256_INLINE __m128 load_d(const char* p0, const char* p1) {
  if constexpr (kHasPartWords<T> && kHasF16Scale<T>) {
    return _mm_mul_ps(load_f16_d<T>(p0, p1), _mm_set1_ps(kScaleUnit<T>));
  } else if constexpr (kHasPartWords<T>) {
    return _mm_setr_ps(X86Block<T>::d(p0), 0.0f, X86Block<T>::d(p1), 0.0f);
  } else {
    return load_f16_d<T>(p0, p1);
  }
}

/// Computes the factors of two rows' superblocks; adds what is to be subtracted from the sums to
/// mins[t], in the lanes of each row.
template <DType T, int N>
SNAPKV_256_INLINE void prepare_pair(const char* const (&p)[2], const KUnit* const (&x)[N],
                                    PairFactors<T> (&factors)[N], __m256 (&mins)[N]) {
  const auto scales = X86Block<T>::pair_scales(p[0], p[1]);
  const auto deltas = load_deltas<T>(p[0], p[1]);
  const __m128 d = load_d<T>(p[0], p[1]);
  SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
    __m128 d_x = _mm_mul_ps(d, _mm_broadcast_ss(&x[t]->d));
    _mm_store_ps(factors[t].d, d_x);
    const __m256i min_sums = prepare_factors<T>(scales, deltas, *x[t], factors[t]);
    if constexpr (kSubtracts<T>) {
      constexpr int kAt = kHasMin<T> ? 1 : 0;
      if constexpr (HasLevelOffset<T> && !kHasMin<T>) {
        d_x = _mm_mul_ps(d_x, _mm_set1_ps(X86Block<T>::kOffset));
      }
      const __m256i lanes =
          _mm256_setr_epi32(kAt, kAt, kAt, kAt, 2 + kAt, 2 + kAt, 2 + kAt, 2 + kAt);
      const __m256 units = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(d_x), lanes);
      mins[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(min_sums), units, mins[t]);
    }
  }
}

/// The levels of a superblock, one part after the other. multiply() gives sums of two adjacent
/// products of a part, as 16-bit numbers.
template <DType T>
struct SuperblockLevels {
  const char* p;
  SNAPKV_256_INLINE void read(const char* at) { p = at; }
  SNAPKV_256_INLINE __m256i load(int part) { return X86Block<T>::levels(p, part); }
  static SNAPKV_256_INLINE __m256i multiply(__m256i levels, const KUnit& x, int part) {
    return multiply_neighbours<T>(levels, x.q[part], x.magnitudes[part]);
  }
};

SNAPKV_256_INLINE __m256i load_activations(const KUnit& x, int part) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(x.q[part]));
}

/// Magnitudes are multiplied by activations that have taken over the levels' signs.
template <DType T>
requires(HasCodebook<T> && !HasDeltas<T>) struct SuperblockLevels<T> {
  CodebookLevels<T> groups;
  SNAPKV_256_INLINE void read(const char* p) { groups.read(p); }
  struct Part {
    __m256i magnitudes, signs;
  };
  SNAPKV_256_INLINE Part load(int part) {
    return {.magnitudes = part_magnitudes(groups, part), .signs = part_signs(groups, part)};
  }
  static SNAPKV_256_INLINE __m256i multiply(const Part& w, const KUnit& x, int part) {
    return _mm256_maddubs_epi16(w.magnitudes, _mm256_sign_epi8(load_activations(x, part), w.signs));
  }
};

/// Entries are multiplied as they are; prepare_factors() computes what deltas contribute.
template <DType T>
requires HasDeltas<T>
struct SuperblockLevels<T> {
  CodebookLevels<T> groups;
  SNAPKV_256_INLINE void read(const char* p) { groups.read(p); }
  SNAPKV_256_INLINE __m256i load(int part) { return part_magnitudes(groups, part); }
  static SNAPKV_256_INLINE __m256i multiply(__m256i entries, const KUnit& x, int part) {
    return _mm256_maddubs_epi16(entries, load_activations(x, part));
  }
};

/// A byte's digits are found one after the other: the next is that of 3 times the byte, modulo 256.
/// Bytes are kept less 128, which 3 times the byte is too: 3 * 128 is 128 modulo 256.
template <>
struct SuperblockLevels<DType::tq1_0> {
  const char* p;
  __m256i of_32, of_16;  // of the last part from 0 to 4, and from 5 to 7
  SNAPKV_256_INLINE void read(const char* at) { p = at; }

  static SNAPKV_256_INLINE __m256i times_3(__m256i x) {
    return _mm256_add_epi8(x, _mm256_add_epi8(x, x));
  }
  SNAPKV_256_INLINE __m256i load(int part) {
    const __m256i top = _mm256_set1_epi8(-128);
    if (part == 0) {
      of_32 = _mm256_xor_si256(load_32(p), top);
    } else if (part < 5) {
      of_32 = times_3(of_32);
    } else if (part == 5) {
      const __m256i twice = _mm256_xor_si256(_mm256_broadcastsi128_si256(load_16(p + 32)), top);
      of_16 = _mm256_blend_epi32(twice, times_3(twice), 0xf0);
    } else if (part == 6) {
      of_16 = times_3(times_3(of_16));
    } else {
      // digit 4 of 16 bytes, then digits 0 ... 3 of qh
      const __m128i qh = _mm_castps_si128(
          _mm_broadcast_ss(reinterpret_cast<const float*>(p + offsetof(BlockTQ1_0, qh))));
      const __m128i powers = _mm_setr_epi16(1, 1, 3, 3, 9, 9, 27, 27);
      const __m128i even = _mm_and_si128(_mm_mullo_epi16(qh, powers), _mm_set1_epi16(255));
      const __m128i odd = _mm_mullo_epi16(_mm_and_si128(qh, _mm_set1_epi16(-256)), powers);
      const __m128i last = _mm_xor_si128(_mm_or_si128(even, odd), _mm256_castsi256_si128(top));
      of_16 = _mm256_permute2x128_si256(times_3(of_16), _mm256_castsi128_si256(last), 0x21);
    }
    const __m256i bytes = part < 5 ? of_32 : of_16;
    // bytes from 0 to 85 are -1, those from 171 are 1
    return _mm256_sub_epi8(_mm256_cmpgt_epi8(_mm256_set1_epi8(86 - 128), bytes),
                           _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(170 - 128)));
  }
  /// Gives m times the products' sums: at most 63 * 2 * 128, so that two parts fit into 16 bits.
  static SNAPKV_256_INLINE __m256i multiply(__m256i levels, const KUnit& x, int part) {
    const __m256i m = _mm256_load_si256(reinterpret_cast<const __m256i*>(x.m_of_values[part]));
    return _mm256_maddubs_epi16(m, _mm256_sign_epi8(load_activations(x, part), levels));
  }
};

/// How many rows are multiplied in turns, part by part. Digits of tq1_0 depend on each other, and
/// another row's products fill the time; the other types would lack registers (measured: up to 1.2
/// times the time).
template <DType T, int N>
constexpr int kRowsInTurns = N == 1 && T == DType::tq1_0 ? 2 : 1;

/// acc[r][t] += the products of the superblocks of rows `row` + r of the pair.
template <DType T, int R, int N>
SNAPKV_256_INLINE void multiply_superblocks_of(SuperblockLevels<T>* levels, int row,
                                               const KUnit* const (&x)[N],
                                               const PairFactors<T> (&factors)[N],
                                               __m256 (*acc)[N]) {
  __m256i sums[R][N];
  SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) sums[r][t] = _mm256_setzero_si256();
  }
  if constexpr (T == DType::tq1_0) {
    constexpr int kPairs[4][2] = {{0, 5}, {1, 6}, {2, 7}, {3, 4}};  // digits in two chains
    SNAPKV_UNROLL for (int i = 0; i < 4; ++i) {
      const int a = kPairs[i][0], b = kPairs[i][1];
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const __m256i first = levels[r].load(a), last = levels[r].load(b);
        SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
          const __m256i pairs = _mm256_add_epi16(levels[r].multiply(first, *x[t], a),
                                                 levels[r].multiply(last, *x[t], b));
          sums[r][t] = add_scaled_pairs(sums[r][t], pairs, _mm256_set1_epi16(1));
        }
      }
    }
  } else {
    SNAPKV_UNROLL for (int part = 0; part < kSuperblockParts; ++part) {
      SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
        const auto w = levels[r].load(part);
        SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
          const __m256i pairs = SuperblockLevels<T>::multiply(w, *x[t], part);
          sums[r][t] = add_scaled_pairs(sums[r][t], pairs, factors[t].of(row + r, part, *x[t]));
        }
      }
    }
  }
  SNAPKV_UNROLL for (int r = 0; r < R; ++r) {
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      const __m256 d = _mm256_broadcast_ss(&factors[t].d[2 * (row + r)]);
      acc[r][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r][t]), d, acc[r][t]);
    }
  }
}

/// Levels that are read one superblock ahead, if the type has such.
template <DType T>
using AheadLevels = std::conditional_t<HasCodebook<T>, SuperblockLevels<T>, char>;

/// Factors, and what is read of superblocks with codebooks, take long to compute and little time to
/// use, so they are computed one superblock ahead.
template <DType T, int N>
SNAPKV_256 void multiply_superblock_rows(const GemvCall& c) {
  constexpr int64_t kBytes = block_bytes(T);
  const int64_t n_units = c.n_in / kSuperblockSize;
  for (int64_t row = 0; row < c.n_rows; row += 2) {
    const bool pair = row + 1 < c.n_rows;  // otherwise the last row is used twice
    const char* p[2] = {c.w + row * c.w_stride, c.w + (pair ? row + 1 : row) * c.w_stride};
    const char* next[2] = {p[0], p[1]};
    const KUnit *x[N], *next_x[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      x[t] = next_x[t] = reinterpret_cast<const KUnit*>(c.x + t * c.x_stride);
    }
    __m256 acc[2][N], mins[N];
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      acc[0][t] = acc[1][t] = mins[t] = _mm256_setzero_ps();
    }
    PairFactors<T> factors[2][N];
    prepare_pair<T, N>(next, next_x, factors[0], mins);
    [[maybe_unused]] AheadLevels<T> ahead_levels[2][2];
    if constexpr (HasCodebook<T>) {
      SNAPKV_UNROLL for (int r = 0; r < 2; ++r) ahead_levels[0][r].read(next[r]);
    }
    // prefetching for two adjacent rows covers the lines two rows below
    const int64_t ahead = kPrefetchBytes + c.w_stride;
    for (int64_t u = 0; u < n_units; ++u) {
      for (int64_t i = 0; i < kBytes; i += 64) {
        __builtin_prefetch(p[0] + ahead + i, 0, 2);
        __builtin_prefetch(p[1] + ahead + i, 0, 2);
      }
      if (u + 1 < n_units) {
        SNAPKV_UNROLL for (int t = 0; t < N; ++t)++ next_x[t];
        SNAPKV_UNROLL for (int r = 0; r < 2; ++r) next[r] += kBytes;
        prepare_pair<T, N>(next, next_x, factors[(u + 1) % 2], mins);
        if constexpr (HasCodebook<T>) {
          SNAPKV_UNROLL for (int r = 0; r < 2; ++r) ahead_levels[(u + 1) % 2][r].read(next[r]);
        }
      }
      constexpr int kRows = kRowsInTurns<T, N>;
      SNAPKV_UNROLL for (int r = 0; r < 2; r += kRows) {
        if constexpr (HasCodebook<T>) {
          multiply_superblocks_of<T, kRows, N>(ahead_levels[u % 2] + r, r, x, factors[u % 2],
                                               acc + r);
        } else {
          SuperblockLevels<T> levels[kRows];
          SNAPKV_UNROLL for (int k = 0; k < kRows; ++k) levels[k].read(p[r + k]);
          multiply_superblocks_of<T, kRows, N>(levels, r, x, factors[u % 2], acc + r);
        }
      }
      SNAPKV_UNROLL for (int r = 0; r < 2; ++r) p[r] = next[r];
      SNAPKV_UNROLL for (int t = 0; t < N; ++t) x[t] = next_x[t];
    }
    SNAPKV_UNROLL for (int t = 0; t < N; ++t) {
      float* sums = c.sums + t * c.sums_stride + row;
      const __m256 zero = _mm256_setzero_ps();
      sums[0] = sum_lanes(_mm256_sub_ps(acc[0][t], _mm256_blend_ps(mins[t], zero, 0xf0)));
      if (pair) sums[1] = sum_lanes(_mm256_sub_ps(acc[1][t], _mm256_blend_ps(zero, mins[t], 0xf0)));
    }
  }
}

template <DType T>
void multiply_superblocks(const GemvCall& c) {
  for_activation_rows(c,
                      [](auto n, const GemvCall& part) { multiply_superblock_rows<T, n>(part); });
}

GemvFn find_multiply_superblocks(DType weight) {
  return visit_weight_type(weight, [](auto type) -> GemvFn {
    constexpr DType T = type.dtype;
    if constexpr (HasX86Block<T> && block_size(T) == kSuperblockSize) {
      return multiply_superblocks<T>;
    }
    return nullptr;
  });
}

}  // namespace
}  // namespace snapkv::cpu
