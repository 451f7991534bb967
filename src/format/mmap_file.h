// SPDX-License-Identifier: MIT
// MmapFile: a file's bytes in memory, mapped read-only or copied; released on destruction. Used by
// the readers of model files; the addresses stay valid when the object moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "format/mapped_ranges.h"

namespace snapkv {

/// `mapped`: pages are read from the file when they are used, and the system may drop them again.
/// `copied`: everything is read at once into memory of this process; what happens to the file
/// afterwards doesn't matter.
enum class FileAccess { mapped, copied };

/// Size of a file that is to be copied; 0 when it can't be known. Throws Error{kDoesNotFit} when it
/// is more than `most`.
uint64_t bytes_to_copy(const std::string& path, uint64_t most);

class MmapFile {
 public:
  /// Throws Error{kRuntime} naming path and cause when the file is missing, no regular file or
  /// unreadable, Error{kBadModel} when it is empty or changes while it is copied,
  /// Error{kDoesNotFit} when there is no memory for a copy, or no room to map it.
  explicit MmapFile(const std::string& path, FileAccess access = FileAccess::mapped);
  MmapFile(MmapFile&& other) noexcept;
  MmapFile& operator=(MmapFile&& other) noexcept;
  MmapFile(const MmapFile&) = delete;
  MmapFile& operator=(const MmapFile&) = delete;
  ~MmapFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Throws Error{kBadModel} naming the file when its size or its time of modification is no longer
  /// what it was when the file was opened: what was read since may be wrong. A copy never changes.
  /// A file that another one has replaced under its name is still the one that was opened.
  /// `advice`: what to do then, in a sentence's end.
  void check_unchanged(const char* advice = kWeightsAdvice) const;
  static const char* const kWeightsAdvice;

  // Hints to the kernel about [offset, offset + length), clipped to the file; never an error.
  /// Read it ahead.
  void will_need(size_t offset, size_t length) const;
  /// Drop whole pages of it from memory; they are read again on the next access. Does nothing for a
  /// copy, nor after move_to_huge_pages(): what was moved is in memory only.
  void dont_need(size_t offset, size_t length) const;
  /// It will be read once, front to back.
  void sequential(size_t offset, size_t length) const;

  /// Copies the huge pages that begin in [offset, offset + length) and lie inside the file into
  /// memory of this process, in place of the file's pages: bytes() shows the same at the same
  /// addresses, and other threads may read it meanwhile. Returns how much was moved; nothing when
  /// there is no memory for it.
  std::optional<size_t> move_to_huge_pages(size_t offset, size_t length);

 private:
  enum class Rounding { kOutward, kInward };
  void map(int fd, const std::string& path);
  void copy(int fd, const std::string& path);
  void advise(size_t offset, size_t length, int advice, Rounding rounding) const;

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  /// At an address of its own, which does not change when the object moves.
  struct State {
    std::mutex mutex;
    bool in_memory = false;  // some of the bytes are in memory only
    std::string path;
    int fd = -1;              // of a mapped file
    int64_t modified_ns = 0;  // time of modification when the file was opened
    MappedRange range;
    ~State();
  };
  std::unique_ptr<State> state_;
};

}  // namespace snapkv
