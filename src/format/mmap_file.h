// SPDX-License-Identifier: MIT
// MmapFile: a file's bytes in memory, mapped read-only or copied, and released on destruction. The
// addresses stay valid when the object is moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "format/mapped_ranges.h"
#include "snapkv/lent_file.h"

namespace snapkv {

/// `mapped`: pages are read from the file when they are used, and the system may drop them again.
/// `copied`: everything is read at once into this process's memory; later changes of the file do
/// not matter.
enum class FileAccess { mapped, copied };

/// Size of a file to be copied; 0 if it cannot be found out. Throws Error{kDoesNotFit} if it is
/// more than `most`.
uint64_t bytes_to_copy(const std::string& path, uint64_t most);

class MmapFile {
 public:
  /// Throws Error{kRuntime} naming path and cause if the file is missing, not a regular file or
  /// unreadable, Error{kBadModel} if it is empty or changes while it is copied, Error{kDoesNotFit}
  /// if there is no memory for a copy or no address space to map it.
  explicit MmapFile(const std::string& path, FileAccess access = FileAccess::mapped);
  /// A file's content in memory of others, which stays where it is. Throws Error{kUsage} unless it
  /// begins at a multiple of Buffer::kAlignment, Error{kBadModel} if it is empty.
  explicit MmapFile(const LentFile& file);
  MmapFile(MmapFile&& other) noexcept;
  MmapFile& operator=(MmapFile&& other) noexcept;
  MmapFile(const MmapFile&) = delete;
  MmapFile& operator=(const MmapFile&) = delete;
  ~MmapFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Throws Error{kBadModel} naming the file if its size or modification time has changed since it
  /// was opened: what was read since may be wrong. A copy never changes. If another file takes over
  /// the name, the opened one is unchanged. `advice`: what to do then, as the end of a sentence.
  void check_unchanged(const char* advice = kWeightsAdvice) const;
  static const char* const kWeightsAdvice;

  // Hints to the kernel about [offset, offset + length), clipped to the file; never an error.
  /// Read it ahead.
  void will_need(size_t offset, size_t length) const;
  /// Drop whole pages of it from memory; they are read again on the next access. No effect for a
  /// copy or after move_to_huge_pages(): moved pages are in memory only.
  void dont_need(size_t offset, size_t length) const;
  /// It will be read once, front to back.
  void sequential(size_t offset, size_t length) const;

  /// Copies the huge pages that begin in [offset, offset + length) and lie inside the file into
  /// this process's memory, in place of the file's pages. bytes() has the same content at the same
  /// addresses, and other threads may read it meanwhile. Returns the number of bytes moved, or
  /// nothing if there is no memory.
  std::optional<size_t> move_to_huge_pages(size_t offset, size_t length);

 private:
  enum class Rounding { kOutward, kInward };
  void map(int fd, const std::string& path);
  void copy(int fd, const std::string& path);
  void advise(size_t offset, size_t length, int advice, Rounding rounding) const;

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  /// Allocated separately, so that its address does not change when the object is moved.
  struct State {
    std::mutex mutex;
    bool in_memory = false;  // some bytes are in memory only
    std::string path;
    int fd = -1;              // of a mapped file
    int64_t modified_ns = 0;  // time of modification when the file was opened
    std::shared_ptr<const void> owner;  // of lent bytes
    bool is_lent = false;
    MappedRange range;
    ~State();
  };
  std::unique_ptr<State> state_;
};

}  // namespace snapkv
