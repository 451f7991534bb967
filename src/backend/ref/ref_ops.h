// SPDX-License-Identifier: MIT
// The ops of backend/ops.h as plain loops, f64 accumulation. Called by ref_kernels.cpp.
#pragma once

#include <span>

#include "backend/ops.h"

namespace snapkv::ref {

// ref_linear.cpp
void embed(const Tensor& weight, std::span<const int32_t> ids, const Tensor& out);
void project(const Tensor& x, const Projection& p);
void pack(const Tensor& weight, PackedWeight& packed);
void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                    const Tensor& out, bool accumulate);

// ref_rowwise.cpp
void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out);
void rope(const Tensor& x, std::span<const int32_t> pos, const RopeFrequencies& rope);
void swiglu(const Tensor& gate, const Tensor& up, const Tensor& out);
void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst);

// ref_attention.cpp
void attention_prefill(const PrefillAttention& a);
void attention_decode(const DecodeAttention& a);

// ref_select.cpp
void window_votes(const WindowVotes& w);
void pool(const Tensor& scores, std::span<const int32_t> n, int kernel_size, Pooling pooling,
          const Tensor& out);
void top_k(const Tensor& scores, std::span<const int32_t> n, std::span<const int32_t> k, int n_tail,
           const Tensor& rows);
void gather_rows(const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                 std::span<void* const> dst);
void convert_rows(const RowConversion& c);

}  // namespace snapkv::ref
