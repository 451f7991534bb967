// SPDX-License-Identifier: MIT
// TemporaryFolder: a folder for what a run keeps on the disk while it lasts. Used by
// prompt_reader.cpp.
#pragma once

#include <string>

namespace snapkv::eval {

/// A folder of this run's own, which nobody else can have put a link into; it goes with this.
class TemporaryFolder {
 public:
  /// Throws kRuntime when none can be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace snapkv::eval
