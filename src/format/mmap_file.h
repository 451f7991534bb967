// SPDX-License-Identifier: MIT
// MmapFile: a file mapped read-only, unmapped on destruction. Used by GgufFile; the mapping's
// addresses stay valid when the object moves.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
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
  /// Drop whole pages of it from memory; they are read again on the next access. Not after
  /// move_to_huge_pages(): what was moved is in memory only.
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
  void advise(size_t offset, size_t length, int advice, Rounding rounding) const;

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  struct State {
    std::mutex mutex;
    bool moved = false;  // some of it
  };
  std::unique_ptr<State> state_ = std::make_unique<State>();
};

}  // namespace snapkv
