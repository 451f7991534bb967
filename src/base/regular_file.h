// SPDX-License-Identifier: MIT
// A check of paths before they are opened.
#pragma once

#include <string>

namespace snapkv {

/// Throws Error{kUsage} if the path is that of something else than a regular file: a pipe would
/// keep its reader waiting.
void require_regular_file(const std::string& path);

}  // namespace snapkv
