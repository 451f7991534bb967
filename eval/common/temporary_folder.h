// SPDX-License-Identifier: MIT
// TemporaryFolder: a folder for files that are needed only during a run.
#pragma once

#include <string>

namespace snapkv::eval {

/// A folder that only this run can write to, so that nobody can plant a link in it; the destructor
/// removes it.
class TemporaryFolder {
 public:
  /// Throws kRuntime if no folder can be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace snapkv::eval
