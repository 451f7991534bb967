// SPDX-License-Identifier: MIT
// The inner step of blocked attention: some query rows against one block of KV rows, with an online
// softmax. One table of functions, two implementations: f32 products for every processor
// (attention_tile_f32.cpp) and native bf16 products (attention_tile_bf16.cpp, x86-64 with
// AVX512_BF16).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "snapkv/dtype.h"

namespace snapkv::cpu {

/// Rows of K or V as they lie in the cache: row j starts at data + j * stride (bytes).
struct KvRows {
  const char* data = nullptr;
  int64_t stride = 0;
  DType dtype = DType::f32;
  int n_rows = 0;
  int head_dim = 0;
};

/// Prefetches rows that are about to be packed. They come from memory or the last-level cache; a
/// loop that converts row by row would wait for that latency at every page.
inline void prefetch(const KvRows& rows) {
  const int64_t row_bytes = rows.head_dim * block_bytes(rows.dtype);
  for (int row = 0; row < rows.n_rows; ++row) {
    const char* data = rows.data + row * rows.stride;
    for (int64_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(data + i, 0, 2);
  }
}

/// Query rows and their running softmax. With s = q . k in log2 units (the packed queries include
/// scale * log2(e)), row r has max = max(s), sum = sum(2^(s - max)) and acc = sum(2^(s - max) * v)
/// over all blocks so far.
struct QueryRows {
  const void* q = nullptr;             // [n_rows, head_dim], from pack_q
  const int32_t* n_hidden = nullptr;   // [n_rows]: a row sees columns [n_hidden, n_visible)
  const int32_t* n_visible = nullptr;  // of this block, which may be none
  int n_rows = 0;                      // a multiple of kRowGroup
  int head_dim = 0;      // of queries and keys
  int value_dim = 0;
  float softcap = 0.0f;  // AttentionVariant::softcap
  bool first = false;    // the rows' first block, of which each row sees a part
  float* max = nullptr;  // [n_rows], initially -inf (or a sink's score)
  float* sum = nullptr;  // [n_rows], initially 0 (or 1 for a sink)
  float* acc = nullptr;  // [n_rows, padded_dim(value_dim)], written by the first block; initially 0
                         // if no block is `first`
};

/// Softcap for scores in log2 units: s becomes c * tanh(s / c) with c = cap * log2(e). With e =
/// 2^(-2 |s| / cap) = exp(-2 |s| / c), that is c * (1 - e) / (1 + e) with the sign of s, which
/// cannot overflow. Far below the cap, 1 - e would lose digits; so where t = |s| / c is less than
/// kSmall, tanh is computed as the series t - t^3 / 3 + 2 t^5 / 15 - 17 t^7 / 315, whose next term
/// is below the precision of f32 there.
struct SoftcapFactors {
  explicit constexpr SoftcapFactors(float cap)
      : exponent(-2.0f / cap), amplitude(cap * 1.44269504f), inverse(0.693147181f / cap) {}
  static constexpr float kSmall = 0.2f;
  static constexpr float kSeries[] = {-17.0f / 315, 2.0f / 15, -1.0f / 3, 1.0f};  // of t^6 ... 1
  float exponent, amplitude, inverse;
};

/// Query rows that share each loaded K or V value; row counts are padded to a multiple of it.
constexpr int kRowGroup = 6;

/// KV rows per block: K and V of a block stay in a 1 MiB L2 cache for all query rows. It depends on
/// head_dim only: block boundaries decide the rounding, so nothing else may influence them.
constexpr int kv_block_rows(int head_dim) {
  return head_dim <= 128 ? 512 : head_dim <= 256 ? 256 : 128;
}

/// Columns of `acc`: whole vectors of any width.
constexpr int padded_dim(int head_dim) { return (head_dim + 15) / 16 * 16; }

/// The most bytes that a packed block of `n_rows` K or V rows takes (whole panels).
constexpr int64_t packed_block_bytes(int64_t n_rows, int head_dim, int64_t element_bytes) {
  return (n_rows + 63) / 64 * 64 * padded_dim(head_dim) * element_bytes;
}

/// Bytes of `scratch` that attend() needs for blocks of up to n_cols columns.
constexpr int64_t attend_scratch_bytes(int64_t n_cols) {
  return kRowGroup * ((n_cols + 63) / 64 * 64 + 32) * int64_t{2 * sizeof(float)};
}

/// The columns of a block that any row of the group at `row` sees, starting at a whole panel.
struct GroupColumns {
  GroupColumns(const QueryRows& rows, int row, int panel) {
    begin = *std::min_element(rows.n_hidden + row, rows.n_hidden + row + kRowGroup) / panel * panel;
    end = *std::max_element(rows.n_visible + row, rows.n_visible + row + kRowGroup);
  }
  int begin, end;
};

struct TileKernels {
  size_t element_bytes = 0;  // of packed q, k and v
  /// dst[i] = q[i] * scale, rounded to the element type; i < head_dim.
  void (*pack_q)(const float* q, int head_dim, float scale, void* dst) = nullptr;
  void (*pack_k)(const KvRows& k, void* dst) = nullptr;
  void (*pack_v)(const KvRows& v, void* dst) = nullptr;
  /// Adds a block of n_cols columns to the running softmax of every row that sees part of it.
  void (*attend)(const QueryRows& rows, const void* k, const void* v, int n_cols,
                 void* scratch) = nullptr;
  /// dst[i] = acc[i] * factor, i < value_dim; f32 or bf16.
  void (*store)(const float* acc, int value_dim, float factor, DType dtype, void* dst) = nullptr;
  /// scores[r, j] = q[r] . k[j] for j < n_cols; row stride `ld` floats, at least n_cols rounded up
  /// to 64 (the padding is written too). Null for bf16.
  void (*scores)(const void* q, int n_rows, int head_dim, const void* k, int n_cols, float* scores,
                 int64_t ld) = nullptr;
  /// Caps n scores (SoftcapFactors) and up to 15 after them. Null for bf16.
  void (*cap_scores)(float* scores, int n, float softcap) = nullptr;
};

/// f32 products. With round_bf16, q, K, V and probabilities are first rounded to bf16, which gives
/// the same products as native bf16 on processors without it.
const TileKernels& f32_tile_kernels(bool round_bf16);

/// Native bf16 products with f32 accumulation. Call only if CpuContext::native_bf16 and
/// has_bf16_tile_kernels() hold.
const TileKernels& bf16_tile_kernels();
constexpr bool has_bf16_tile_kernels() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

}  // namespace snapkv::cpu
