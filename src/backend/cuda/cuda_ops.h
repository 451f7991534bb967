// SPDX-License-Identifier: MIT
// The ops of backend/ops.h on a CUDA device: same names and meanings, every tensor and pointer in
// device memory, everything else on the host. They return before the device is done. Called by
// cuda_kernels.cpp.
#pragma once

#include <span>

#include "backend/cuda/context.h"
#include "backend/ops.h"

namespace snapkv::cuda {

// ---- rowwise.cu
void rms_norm(Context& ctx, const Tensor& x, const Tensor& weight, float eps, const Tensor& out);
void rope(Context& ctx, const Tensor& x, std::span<const int32_t> pos, const RopeFrequencies& rope);
void swiglu(Context& ctx, const Tensor& gate, const Tensor& up, const Tensor& out);
/// x[t, :] (+)= bias, f32 or bf16
void add_bias(Context& ctx, const Tensor& x, const Tensor& bias);

// ---- rows.cu
void store_rows(Context& ctx, const Tensor& src, DType dtype, std::span<void* const> dst);
void store_positions(Context& ctx, std::span<const int32_t> pos, std::span<int32_t* const> dst);
void gather_rows(Context& ctx, const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                 std::span<void* const> dst);
void convert_rows(Context& ctx, const RowConversion& c);

// ---- weights.cu
void embed(Context& ctx, const Tensor& weight, std::span<const int32_t> ids, const Tensor& out);
/// out [n_out, n_in] f32 or bf16 = weight, any weight type.
void expand(Context& ctx, const Tensor& weight, const Tensor& out);

// ---- project.cu
void project(Context& ctx, const Tensor& x, std::span<const Projection> projections);

// ---- attention_prefill.cu, attention_decode.cu
void attention_prefill(Context& ctx, const PrefillAttention& a);
void attention_decode(Context& ctx, const DecodeAttention& a);

// ---- votes.cu
void window_votes(Context& ctx, const WindowVotes& w);

// ---- select.cu
void pool(Context& ctx, const Tensor& scores, std::span<const int32_t> n, int kernel_size,
          Pooling pooling, const Tensor& out);
void top_k(Context& ctx, const Tensor& scores, std::span<const int32_t> n,
           std::span<const int32_t> k, int n_tail, const Tensor& rows);

}  // namespace snapkv::cuda
