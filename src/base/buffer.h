// SPDX-License-Identifier: MIT
// Buffer: owns a block of memory of one backend; it can be moved but not copied.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <utility>

#include "base/tensor.h"

namespace snapkv {

class Buffer {
 public:
  /// Alignment of every buffer: a cache line, and the widest vector.
  static constexpr size_t kAlignment = 64;
  using Release = void (*)(void* data, size_t bytes, void* context);

  Buffer() = default;
  Buffer(void* data, size_t bytes, Release release, void* context = nullptr)
      : data_(data), bytes_(bytes), release_(release), context_(context) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr && release_ != nullptr) release_(data_, bytes_, context_);
  }

  /// Uninitialized host memory; throws Error{kDoesNotFit} naming `what` if there is none.
  static Buffer host(size_t bytes, const char* what);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  /// Whether it releases its memory; false if the memory belongs to someone else.
  bool owns() const { return release_ != nullptr; }

  /// A contiguous view of the buffer from `offset` on, checked against its size.
  Tensor view(DType dtype, std::initializer_list<int64_t> shape, size_t offset = 0) const {
    Tensor t(static_cast<char*>(data_) + offset, dtype, shape);
    SNAPKV_CHECK(offset + static_cast<size_t>(t.numel() / block_size(dtype) * block_bytes(dtype)) <=
                 bytes_);
    return t;
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    std::swap(context_, other.context_);
  }
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Release release_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace snapkv
