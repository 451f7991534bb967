// SPDX-License-Identifier: MIT
// The folders in which programs keep models.
#pragma once

#include <filesystem>
#include <string>

namespace snapkv::cli {

/// An environment variable; empty where it is not set.
std::string variable_or_empty(const char* name);
/// A folder below $HOME.
std::filesystem::path home_folder(const char* below);
/// $XDG_CACHE_HOME, else ~/.cache.
std::filesystem::path cache_folder();
/// The cache of Hugging Face's programs: $HF_HUB_CACHE, $HF_HOME/hub, else
/// ~/.cache/huggingface/hub.
std::filesystem::path hugging_face_folder();
/// Snapkv's own: $XDG_CACHE_HOME/snapkv/models.
std::filesystem::path own_models_folder();

}  // namespace snapkv::cli
