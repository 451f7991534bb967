// SPDX-License-Identifier: MIT
// AtomicFile: a file that appears either complete or not at all. It is written under a temporary
// name in the same folder and renamed when it is complete and on the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace snapkv {

/// Checks what the constructor of AtomicFile would reject, without making a file: for programs that
/// work for a long time before they write. Throws as the constructor does.
void check_can_write(const std::string& path, bool overwrite);

/// Removes the temporary files of all files being written. For handlers of signals that end the
/// process: it allocates nothing and takes no locks.
void remove_temporary_files();

/// Removes the temporary files in a folder that processes which were killed have left there, and
/// returns their number. Files that a process is still writing stay.
int remove_abandoned_files(const std::string& folder);

class AtomicFile {
 public:
  /// Makes the temporary file with the permissions of the file that it will replace. If `path` is a
  /// symbolic link, the file that it points to is written and the link is kept. Throws
  /// Error{kUsage} if `path` exists and `overwrite` is false, is not a regular file, is a link to
  /// nothing, or is where stdout or stderr goes; Error{kRuntime} naming the path if no file can be
  /// made there.
  AtomicFile(const std::string& path, bool overwrite);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless commit() was called.
  ~AtomicFile();

  /// Appends `bytes`. Throws Error{kRuntime} naming the path and the cause.
  void write(std::span<const std::byte> bytes);
  uint64_t position() const { return position_; }
  /// Waits until everything is on the disk, then gives the file its name. Throws Error{kUsage} if
  /// `path` has appeared meanwhile and must not be overwritten, Error{kRuntime} as write() does.
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* what) const;
  void write_now(std::span<const std::byte> bytes);
  void forget_temporary();

  std::string path_;
  std::string temporary_;
  bool overwrite_;
  int fd_ = -1;
  int slot_ = -1;  // index of the name for remove_temporary_files()
  uint64_t position_ = 0;
  std::vector<std::byte> buffer_;  // collects small writes
};

}  // namespace snapkv
