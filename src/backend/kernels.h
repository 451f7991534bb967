// SPDX-License-Identifier: MIT
// Kernels: what a backend implements, one method per op of ops.h with the same name, parameters and
// meaning. Arguments were validated by ops.cpp; kernels trust them. Only ops.cpp calls this.
#pragma once

#include <chrono>
#include <cstring>
#include <string>

#include "backend/ops.h"

namespace snapkv {

class Kernels {
 public:
  virtual ~Kernels() = default;

  virtual std::string description() const = 0;
  virtual DType compute_dtype() const = 0;
  virtual int n_threads() const = 0;

  // Memory and order, as Backend has them: those of a backend that works on host memory.
  virtual Buffer allocate(size_t bytes, const char* what) { return Buffer::host(bytes, what); }
  virtual Buffer allocate_pinned(size_t bytes, const char* what) {
    return Buffer::host(bytes, what);
  }
  virtual size_t free_memory() const { return 0; }
  virtual size_t peak_memory() const { return 0; }
  virtual void reset_peak_memory() {}
  virtual void upload(void* device, const void* host, size_t bytes) {
    std::memcpy(device, host, bytes);
  }
  virtual void download(void* host, const void* device, size_t bytes) {
    std::memcpy(host, device, bytes);
  }
  virtual void copy(void* dst, const void* src, size_t bytes) { std::memcpy(dst, src, bytes); }
  virtual void synchronize() {}
  virtual int64_t mark() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }
  virtual double seconds_between(int64_t begin, int64_t end) const {
    return static_cast<double>(end - begin) * 1e-9;
  }
  virtual void place_weights(std::span<const Tensor> /*weights*/) {}
  virtual void begin_step(uint64_t /*shape*/) {}
  virtual void end_step(bool /*completed*/) {}

  virtual void embed(const Tensor& weight, std::span<const int32_t> ids, const Tensor& out) = 0;
  virtual void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) = 0;
  virtual void project(const Tensor& x, std::span<const Projection> projections) = 0;
  virtual void pack(const Tensor& weight, PackedWeight& packed) = 0;
  virtual void project_packed(const Tensor& x, const PackedWeight& weight, const Tensor& bias,
                              const Tensor& out, bool accumulate) = 0;
  virtual void rope(const Tensor& x, std::span<const int32_t> pos, const RopeFrequencies& rope) = 0;
  virtual void swiglu(const Tensor& gate, const Tensor& up, const Tensor& out) = 0;
  virtual void store_rows(const Tensor& src, DType dtype, std::span<void* const> dst) = 0;
  virtual void store_positions(std::span<const int32_t> pos, std::span<int32_t* const> dst) {
    for (int32_t* head : dst) std::memcpy(head, pos.data(), pos.size_bytes());
  }
  virtual void attention_prefill(const PrefillAttention& a) = 0;
  virtual void attention_decode(const DecodeAttention& a) = 0;
  virtual void window_votes(const WindowVotes& w) = 0;
  virtual void pool(const Tensor& scores, std::span<const int32_t> n, int kernel_size,
                    Pooling pooling, const Tensor& out) = 0;
  virtual void top_k(const Tensor& scores, std::span<const int32_t> n, std::span<const int32_t> k,
                     int n_tail, const Tensor& rows) = 0;
  virtual void gather_rows(const Tensor& src, const Tensor& rows, std::span<const int32_t> n,
                           std::span<void* const> dst) = 0;
  virtual void convert_rows(const RowConversion& c) = 0;
};

}  // namespace snapkv
