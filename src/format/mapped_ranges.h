// SPDX-License-Identifier: MIT
// MappedRange: enters a mapping and its file's path in the table that mapped_file_at()
// (snapkv/mapped_file.h) looks into. Used by MmapFile.
#pragma once

#include <cstddef>

namespace snapkv {

class MappedRange {
 public:
  MappedRange() = default;
  /// `path` must outlive this. A table that is full (1024 files) leaves the mapping out.
  MappedRange(const void* data, size_t bytes, const char* path);
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&& other) noexcept;
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;
  ~MappedRange();

 private:
  int slot_ = -1;
};

}  // namespace snapkv
