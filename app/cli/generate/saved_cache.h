// SPDX-License-Identifier: MIT
// --save-cache and --load-cache: a prompt's compressed cache in a file, for prompts that continue
// from it.
#pragma once

#include <functional>
#include <string>

#include "cli/common/cli_types.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

/// Returns `given` with the settings that a saved cache is bound to, wherever `is_given` says that
/// an option ("--kv-budget") was not given. Loading the cache refuses settings that differ.
CacheSettings with_saved(const CacheSettings& given, const SessionOptions& saved,
                         const std::function<bool(const std::string& option)>& is_given);

class SavedCache {
 public:
  void add_options(CLI::App& command);
  bool loads() const { return !load_.empty(); }
  bool saves() const { return !save_.empty(); }
  const std::string& load_path() const { return load_; }
  const std::string& save_path() const { return save_; }

  /// Returns the user's cache settings; settings that were not given come from the file to load.
  /// Throws as describe_session().
  CacheSettings settings(const CacheSettings& given) const;

 private:
  const CLI::App* command_ = nullptr;
  std::string save_, load_;
};

}  // namespace snapkv::cli
