// SPDX-License-Identifier: MIT
// Names of files, for programs that write some: so that they destroy nothing that they read.
#pragma once

#include <string>
#include <vector>

namespace snapkv {

/// The files that a model at `path` is read from: a GGUF file, of a split one all parts, or what is
/// read of a Hugging Face folder. Nothing is opened but the folder, and what is no model is `path`
/// itself.
std::vector<std::string> model_files(const std::string& path);

/// Throws Error{kUsage} unless a cache may be saved as `path`: where there is a file, it must be
/// empty or such a cache itself (Session::save, KvPrefix::save, which call this too). Throws
/// Error{kRuntime} when that file can't be read.
void check_cache_path(const std::string& path);

}  // namespace snapkv
