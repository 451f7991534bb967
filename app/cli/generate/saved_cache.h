// SPDX-License-Identifier: MIT
// --save-cache and --load-cache of generate: a prompt's compressed cache in a file, and further
// prompts that continue from it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/common/settings.h"

namespace snapkv::cli {

class SavedCache {
 public:
  void add_options(CLI::App& command);
  bool loads() const { return !load_.empty(); }
  bool saves() const { return !save_.empty(); }
  const std::string& load_path() const { return load_; }
  const std::string& save_path() const { return save_; }

  /// Cache settings as the user gave them, and where nothing was given those of the file to load.
  /// Throws as describe_session().
  CacheSettings settings(const CacheSettings& given) const;

 private:
  bool is_given(const char* option) const;

  const CLI::App* command_ = nullptr;
  std::string save_, load_;
};

}  // namespace snapkv::cli
