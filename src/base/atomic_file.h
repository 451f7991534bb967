// SPDX-License-Identifier: MIT
// AtomicFile: a file that is there whole or not at all. It is written under a temporary name in the
// same folder and takes its name when it is complete and on the disk. Used by the writer of GGUF
// files and by write_file().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace snapkv {

/// What making an AtomicFile would refuse, without making one: for programs that work for long
/// before they write. Throws as its constructor does.
void check_can_write(const std::string& path, bool overwrite);

/// Removes the temporary files of all that are being written, for a handler of a signal that ends
/// the process: no allocation, no locks.
void remove_temporary_files();

class AtomicFile {
 public:
  /// Makes the temporary file, with the permissions of the one that it will replace. Where `path`
  /// is a symbolic link, the file that it leads to is written, and the link stays one. Throws
  /// Error{kUsage} when `path` exists and `overwrite` is false, or is no regular file, or a link to
  /// nothing, or where stdout or stderr goes; Error{kRuntime} naming the path when no file can be
  /// made there.
  AtomicFile(const std::string& path, bool overwrite);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless commit() was called.
  ~AtomicFile();

  /// Appends. Throws Error{kRuntime} naming the path and the cause.
  void write(std::span<const std::byte> bytes);
  uint64_t position() const { return position_; }
  /// Waits until everything is on the disk, then gives the file its name. Throws Error{kUsage} when
  /// `path` has come to exist meanwhile and must not be overwritten, Error{kRuntime} as write().
  void commit();

 private:
  [[noreturn]] void fail_with_errno(const char* what) const;
  void write_now(std::span<const std::byte> bytes);
  void forget_temporary();

  std::string path_;
  std::string temporary_;
  bool overwrite_;
  int fd_ = -1;
  int slot_ = -1;  // where remove_temporary_files() finds the temporary name
  uint64_t position_ = 0;
  std::vector<std::byte> buffer_;  // of small writes
};

}  // namespace snapkv
