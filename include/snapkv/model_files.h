// SPDX-License-Identifier: MIT
// Names of files, so that programs do not overwrite files that they read.
#pragma once

#include <string>
#include <vector>

namespace snapkv {

/// The files that a model at `path` is read from: a GGUF file, all parts of a split one, or the
/// files of a Hugging Face folder. Opens nothing except the folder. If `path` is not a model, the
/// result is `path` itself.
std::vector<std::string> model_files(const std::string& path);

/// Throws Error{kUsage} unless a cache may be saved as `path`: an existing file must be empty or
/// such a cache (Session::save and KvPrefix::save check this themselves). Throws Error{kRuntime} if
/// that file cannot be read.
void check_cache_path(const std::string& path);

}  // namespace snapkv
