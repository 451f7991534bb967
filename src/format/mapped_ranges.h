// SPDX-License-Identifier: MIT
// MappedRange: enters a mapping and its file's path in the table in which mapped_file_at()
// (snapkv/mapped_file.h) looks up addresses.
#pragma once

#include <cstddef>

namespace snapkv {

class MappedRange {
 public:
  MappedRange() = default;
  /// `path` must outlive this object. If the table is full (1024 files), the mapping is left out.
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
