// SPDX-License-Identifier: MIT
#include "cli/models/model_folders.h"

#include <cstdlib>

#include "base/error.h"

namespace snapkv::cli {

namespace fs = std::filesystem;

std::string variable_or_empty(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path home_folder(const char* below) {
  const std::string home = variable_or_empty("HOME");
  return home.empty() ? fs::path() : fs::path(home) / below;
}

fs::path cache_folder() {
  const std::string set = variable_or_empty("XDG_CACHE_HOME");
  return set.empty() ? home_folder(".cache") : fs::path(set);
}

fs::path below_cache(const char* below) {
  const fs::path cache = cache_folder();
  return cache.empty() ? cache : cache / below;
}

fs::path hugging_face_folder() {
  if (const std::string set = variable_or_empty("HF_HUB_CACHE"); !set.empty()) return set;
  if (const std::string set = variable_or_empty("HF_HOME"); !set.empty()) {
    return fs::path(set) / "hub";
  }
  return below_cache("huggingface/hub");
}

fs::path own_models_folder() { return below_cache("snapkv/models"); }

fs::path needed_folder(const fs::path& folder) {
  if (!folder.empty()) return folder;
  fail(ErrorCode::kUsage, "there is no folder for models: neither HOME nor XDG_CACHE_HOME is set");
}

}  // namespace snapkv::cli
