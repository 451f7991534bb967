// SPDX-License-Identifier: MIT
// --save-cache and --load-cache of generate: a prompt's compressed cache in a file, and further
// prompts that continue from it. Used by ask too, whose documents are such files.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cli/common/settings.h"

namespace snapkv::cli {

/// Cache settings as they were given, and where `is_given` says of an option ("--kv-budget") that
/// it was not, those that a saved cache is bound to. Loading it refuses what differs.
CacheSettings with_saved(const CacheSettings& given, const SessionOptions& saved,
                         const std::function<bool(const std::string& option)>& is_given);

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
  const CLI::App* command_ = nullptr;
  std::string save_, load_;
};

}  // namespace snapkv::cli
