// SPDX-License-Identifier: MIT
// Runs snapkv pull against a FakeHub.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fake_hub.h"
#include "run_process.h"

namespace snapkv::test {

using Environment = std::map<std::string, std::string>;

inline bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Result run_in(const Environment& env, std::vector<std::string> args) {
  Command command;
  command.args = std::move(args);
  command.env = env;
  return run(command);
}

inline Result pull(const Environment& env, const std::string& source,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"pull", source};
  args.insert(args.end(), more.begin(), more.end());
  return run_in(env, args);
}

/// The bytes of a model of 5 MB that runs.
inline const std::string& needle() {
  static const std::string bytes = read_file(needle_model());
  return bytes;
}

/// The names of the models that were fetched; make models may have put others beside the program.
inline std::vector<std::string> fetched_models(const Environment& env) {
  std::vector<std::string> names;
  for (const auto& model : nlohmann::json::parse(run_in(env, {"models", "--json"}).out)) {
    if (model.at("source") != "make models") names.push_back(model.at("name"));
  }
  return names;
}

/// The regular files below a folder, by their paths from there.
inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      names.push_back(entry.path().lexically_relative(folder).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace snapkv::test
