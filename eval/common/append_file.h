// SPDX-License-Identifier: MIT
// AppendFile: a file that grows by whole records. When append() returns, the record is on the disk;
// a failed write leaves no part of a record; and two processes never write one file at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snapkv::eval {

class AppendFile {
 public:
  /// Opens `path` at its end, or creates it. Throws Error{kRuntime} naming it if it cannot be
  /// written, Error{kUsage} naming the process that has it open.
  explicit AppendFile(std::string path);
  /// Removes the file if it is a regular one that this object made and nothing was written to it.
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Bytes in a regular file; 0 for others (a pipe, a device), which are only written to.
  uint64_t size() const { return size_; }
  /// Writes all bytes and waits until they are on the disk. Throws Error{kRuntime}; the file then
  /// ends where it ended before.
  void append(std::string_view bytes);
  /// Shortens the file to `size` bytes. Throws Error{kRuntime}.
  void truncate(uint64_t size);

 private:
  void open();
  bool is_still_there() const;
  [[noreturn]] void fail_io(const char* what) const;

  std::string path_;
  int fd_ = -1;
  bool created_ = false;
  bool is_regular_ = false;
  uint64_t size_ = 0;
};

}  // namespace snapkv::eval
