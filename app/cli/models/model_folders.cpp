// SPDX-License-Identifier: MIT
#include "cli/models/model_folders.h"

#include <cstdlib>

namespace snapkv::cli {

namespace fs = std::filesystem;

std::string variable_or_empty(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path home_folder(const char* below) { return fs::path(variable_or_empty("HOME")) / below; }

fs::path cache_folder() {
  const std::string set = variable_or_empty("XDG_CACHE_HOME");
  return set.empty() ? home_folder(".cache") : fs::path(set);
}

fs::path hugging_face_folder() {
  if (const std::string set = variable_or_empty("HF_HUB_CACHE"); !set.empty()) return set;
  if (const std::string set = variable_or_empty("HF_HOME"); !set.empty()) {
    return fs::path(set) / "hub";
  }
  return cache_folder() / "huggingface" / "hub";
}

fs::path own_models_folder() { return cache_folder() / "snapkv" / "models"; }

}  // namespace snapkv::cli
