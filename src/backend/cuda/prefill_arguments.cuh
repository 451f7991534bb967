// SPDX-License-Identifier: MIT
// Arguments of the kernels in attention_prefill.cu, and the part of the work that a block does.
#pragma once

#include "backend/cuda/tile.cuh"
#include "backend/cuda/variant.cuh"

namespace snapkv::cuda {

/// Arguments of all kernels here. Queries of one KV head are numbered by rows: row r is query r /
/// n_group of query head r % n_group of the group.
struct PrefillArguments {
  const float* q;  // [n, n_head, head_dim]
  const void* k;   // [n_head_kv, capacity, head_dim], strides in values
  const void* v;   // [n_head_kv, capacity, value_dim]
  int64_t k_head, k_row, v_head, v_row;
  const int32_t* n_past;  // [n_head_kv]
  void* out;              // [n, n_head, value_dim]
  float* partial_out;     // [n_split, n, n_head, value_dim], not divided by the sum
  float2* partial_state;  // [n_split, n, n_head] maximum and sum
  int n, n_head_kv, n_group, head_dim;
  int value_dim;     // head_dim, except in the plain kernel
  float scale_log2;  // scores are in units of log2
  int n_tiles, n_split;
  bool out_bf16, k_aligned, v_aligned;
  DeviceVariant variant;
  bool tiles_first;  // consecutive blocks: tiles of one KV head; otherwise KV heads of one tile

  __device__ int n_rows() const { return n * n_group; }
  /// The vector of row r in q and out; multiply by head_dim or value_dim for its offset.
  __device__ int64_t vector_of(int g, int r) const {
    return int64_t{r / n_group} * (n_head_kv * n_group) + g * n_group + r % n_group;
  }
  /// The query head of row r.
  __device__ int head_of(int g, int r) const { return g * n_group + r % n_group; }
  template <typename T>
  __device__ HeadView<T> keys(int g) const {
    return {static_cast<const T*>(k) + g * k_head, k_row, n_past[g] + n, head_dim, k_aligned};
  }
  template <typename T>
  __device__ HeadView<T> values(int g) const {
    return {static_cast<const T*>(v) + g * v_head, v_row, n_past[g] + n, value_dim, v_aligned};
  }
  __device__ void put(int64_t i, float value) const {
    if (out_bf16) {
      static_cast<__nv_bfloat16*>(out)[i] = __float2bfloat16_rn(value);
    } else {
      static_cast<float*>(out)[i] = value;
    }
  }
};

/// A block's work. The last tiles see the most keys and come first.
struct PrefillWork {
  int tile, g, split;
};
__device__ __forceinline__ PrefillWork work_of_block(const PrefillArguments& a) {
  const int b = static_cast<int>(blockIdx.x);
  if (a.tiles_first) {
    return {a.n_tiles - 1 - b % a.n_tiles, b / a.n_tiles / a.n_split, b / a.n_tiles % a.n_split};
  }
  return {a.n_tiles - 1 - b / a.n_head_kv / a.n_split, b % a.n_head_kv,
          b / a.n_head_kv % a.n_split};
}

}  // namespace snapkv::cuda
