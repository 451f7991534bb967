// SPDX-License-Identifier: MIT
// PartialFile: a file that is being fetched, NAME.incomplete, which a later run continues. It knows
// the SHA-256 of what it holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace snapkv::cli {

class PartialFile {
 public:
  /// Opens or makes the file, and reads what is there. Throws Error{kRuntime} naming it.
  explicit PartialFile(const std::filesystem::path& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  uint64_t size() const { return size_; }
  /// The SHA-256 of all bytes, in hexadecimal digits.
  std::string sha256() const;
  /// Throws Error{kRuntime} naming the file and the cause, such as a full disk; what is written
  /// stays.
  void append(std::string_view bytes);
  /// Begins anew.
  void clear();
  /// Waits until everything is on the disk, then gives the file its name.
  void finish(const std::filesystem::path& name);
  /// Deletes the file.
  void remove();

 private:
  struct Digest;
  [[noreturn]] void fail_with_errno(const char* what) const;

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  std::unique_ptr<Digest> digest_;
};

/// Holds a lock file, so that one process at a time fetches a file.
class FetchLock {
 public:
  /// Makes the file `path` and its folders. Throws Error{kRuntime} if another process holds it.
  FetchLock(const std::filesystem::path& path, const std::string& what);
  ~FetchLock();
  FetchLock(const FetchLock&) = delete;
  FetchLock& operator=(const FetchLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace snapkv::cli
