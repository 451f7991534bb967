// SPDX-License-Identifier: MIT
#include "cli/generate/saved_cache.h"

#include <CLI/CLI.hpp>

#include "cli/common/output_files.h"
#include "cli/common/table_options.h"

namespace snapkv::cli {

void SavedCache::add_options(CLI::App& command) {
  constexpr const char* kGroup = "Saved caches";
  command_ = &command;
  mark_output(command.add_option("--save-cache", save_,
                                 "Write the prompt's compressed cache to a file, for --load-cache"),
              OutputKind::cache)
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option("--load-cache", load_,
                  "Continue from a saved cache: the prompt, if there is one, follows what was read "
                  "then; the options of the cache are the file's")
      ->type_name("FILE")
      ->group(kGroup);
}

CacheSettings with_saved(const CacheSettings& given, const SessionOptions& saved,
                         const std::function<bool(const std::string& option)>& is_given) {
  CacheSettings cache = given;
  if (!is_given("--kv-policy")) cache.policy = saved.kv.name;
  for (const PolicySetting& setting : policy_settings(saved.kv)) {
    if (!is_given(flag_of(setting.param->option)))
      cache.params[setting.param->name] = setting.value;
  }
  if (!is_given("--kv-type")) cache.session.kv_type = saved.kv_type;
  if (!is_given("--kv-decode-limit")) cache.session.kv_decode_limit = saved.kv_decode_limit;
  return cache;
}

CacheSettings SavedCache::settings(const CacheSettings& given) const {
  if (!loads()) return given;
  return with_saved(given, describe_session(load_).options, [this](const std::string& option) {
    return command_->get_option(option)->count() > 0;
  });
}

}  // namespace snapkv::cli
