// SPDX-License-Identifier: MIT
// MmapFile: a file mapped read-only, unmapped on destruction. Used by GgufFile; the mapping's
// addresses stay valid when the object moves.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace snapkv {

class MmapFile {
 public:
  /// Maps `path`. Throws Error{kRuntime} naming path and cause when it is missing, no regular file
  /// or unreadable, Error{kBadModel} when it is empty.
  explicit MmapFile(const std::string& path);
  MmapFile(MmapFile&& other) noexcept;
  MmapFile& operator=(MmapFile&& other) noexcept;
  MmapFile(const MmapFile&) = delete;
  MmapFile& operator=(const MmapFile&) = delete;
  ~MmapFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Hints to the kernel about [offset, offset + length), clipped to the file; never an error.
  /// Read it ahead.
  void will_need(size_t offset, size_t length) const;
  /// Drop whole pages of it from memory; they are read again on the next access.
  void dont_need(size_t offset, size_t length) const;
  /// It will be read once, front to back.
  void sequential(size_t offset, size_t length) const;

 private:
  enum class Rounding { kOutward, kInward };
  void advise(size_t offset, size_t length, int advice, Rounding rounding) const;

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace snapkv
