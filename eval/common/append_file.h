// SPDX-License-Identifier: MIT
// AppendFile: a file that grows by whole records. What append() returned from is on the disk, a
// write that fails leaves no part of a record, and two processes never write one file at a time.
// Used by record_file.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snapkv::eval {

class AppendFile {
 public:
  /// Opens `path` at its end, or makes it. Throws Error{kRuntime} naming it when it can't be
  /// written, Error{kUsage} naming the process that has it open.
  explicit AppendFile(std::string path);
  /// A regular file that this made and nothing was written to is removed.
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Bytes in a regular file; 0 of others (a pipe, a device), which are only written to.
  uint64_t size() const { return size_; }
  /// Writes all of it and waits until the disk has it. Throws Error{kRuntime}; the file then ends
  /// where it ended before.
  void append(std::string_view bytes);
  /// Cuts the file off. Throws Error{kRuntime}.
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
