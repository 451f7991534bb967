// SPDX-License-Identifier: MIT
#include "eval/common/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace snapkv::eval {

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) fail(ErrorCode::kRuntime, "no folder for temporary files: {}", error.message());
  path_ = (parent / "snapkv-eval-XXXXXX").string();
  if (::mkdtemp(path_.data()) != nullptr) return;
  fail(ErrorCode::kRuntime, "{}: no folder can be made: {}", path_, std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace snapkv::eval
