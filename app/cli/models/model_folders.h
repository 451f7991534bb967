// SPDX-License-Identifier: MIT
// The folders in which programs keep models.
#pragma once

#include <filesystem>
#include <string>

namespace snapkv::cli {

/// An environment variable; empty where it is not set.
std::string variable_or_empty(const char* name);
/// A folder below $HOME; like those that follow, empty where none of its variables is set.
std::filesystem::path home_folder(const char* below);
/// $XDG_CACHE_HOME, else ~/.cache.
std::filesystem::path cache_folder();
/// A folder below that.
std::filesystem::path below_cache(const char* below);
/// The cache of Hugging Face's programs: $HF_HUB_CACHE, $HF_HOME/hub, else
/// ~/.cache/huggingface/hub.
std::filesystem::path hugging_face_folder();
/// Snapkv's own: $XDG_CACHE_HOME/snapkv/models.
std::filesystem::path own_models_folder();
/// The same folder. Throws kUsage where it is empty.
std::filesystem::path needed_folder(const std::filesystem::path& folder);

}  // namespace snapkv::cli
