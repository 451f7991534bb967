// SPDX-License-Identifier: MIT
// Tensor: a non-owning view of typed memory, outermost dimension first. Buffer (base/buffer.h) owns
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/check.h"
#include "snapkv/dtype.h"

namespace snapkv {

/// A view of up to 4 dimensions. `stride` is in bytes; the last dimension is always contiguous.
/// An empty view (data == nullptr) stands for "not given" where a parameter is optional.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<int64_t, 4> shape{};
  std::array<int64_t, 4> stride{};

  Tensor() = default;
  /// A contiguous view.
  Tensor(void* data_, DType dtype_, std::initializer_list<int64_t> shape_)
      : data(data_), dtype(dtype_), rank(static_cast<int>(shape_.size())) {
    SNAPKV_CHECK(rank >= 1 && rank <= 4);
    int i = 0;
    for (int64_t n : shape_) shape[i++] = n;
    stride[rank - 1] = block_bytes(dtype);
    int64_t step = row_bytes(dtype, shape[rank - 1]);
    for (i = rank - 2; i >= 0; --i) {
      stride[i] = step;
      step *= shape[i];
    }
  }

  explicit operator bool() const { return data != nullptr; }
  int64_t numel() const {
    int64_t n = rank > 0 ? 1 : 0;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  int64_t n_cols() const { return shape[rank - 1]; }
  bool is_contiguous() const {
    int64_t step = row_bytes(dtype, shape[rank - 1]);
    for (int i = rank - 2; i >= 0; --i) {
      if (shape[i] > 1 && stride[i] != step) return false;
      step *= shape[i];
    }
    return true;
  }

  /// Address of element (i), (i, j), ... of a type that is not quantized, or of a row of a block
  /// type.
  template <typename T>
  T* at(int64_t i) const {
    return reinterpret_cast<T*>(bytes() + i * stride[0]);
  }
  template <typename T>
  T* at(int64_t i, int64_t j) const {
    return reinterpret_cast<T*>(bytes() + i * stride[0] + j * stride[1]);
  }
  template <typename T>
  T* at(int64_t i, int64_t j, int64_t k) const {
    return reinterpret_cast<T*>(bytes() + i * stride[0] + j * stride[1] + k * stride[2]);
  }

  /// Rows [begin, end) of the outermost dimension.
  Tensor slice(int64_t begin, int64_t end) const {
    SNAPKV_DCHECK(0 <= begin && begin <= end && end <= shape[0]);
    Tensor t = *this;
    t.data = bytes() + begin * stride[0];
    t.shape[0] = end - begin;
    return t;
  }
  /// The same memory with other dimensions; the view must be contiguous.
  Tensor reshaped(std::initializer_list<int64_t> shape_) const {
    SNAPKV_CHECK(is_contiguous());
    Tensor t(data, dtype, shape_);
    SNAPKV_CHECK(t.numel() == numel());
    return t;
  }
  std::string shape_string() const {
    std::string s = "[";
    for (int i = 0; i < rank; ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
    return s + "]";
  }

 private:
  char* bytes() const { return static_cast<char*>(data); }
};

}  // namespace snapkv
