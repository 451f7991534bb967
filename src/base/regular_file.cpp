// SPDX-License-Identifier: MIT
#include "base/regular_file.h"

#include <filesystem>

#include "base/error.h"

namespace snapkv {

void require_regular_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return;
  fail(ErrorCode::kUsage, "'{}' is not a regular file", path);
}

}  // namespace snapkv
