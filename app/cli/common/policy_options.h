// SPDX-License-Identifier: MIT
// The options of cache policies, made from the policies' tables (snapkv/policy.h): a parameter that
// a policy's file declares is an option of every command that compresses. Used by settings.cpp and
// by commands that run several policies.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/common/settings.h"

namespace snapkv::cli {

/// The one option group of what is kept, of all policies.
inline constexpr const char* kCacheGroup = "KV cache";

/// A parameter with the policies that have it, which share its table.
struct SharedParam {
  const PolicyParam* param = nullptr;  // as the first policy has it
  std::vector<const PolicyInfo*> policies;
};
/// Every parameter once, in the order of the policies' tables.
std::vector<SharedParam> shared_params();
/// Whether every policy that drops rows has it.
bool is_common(const SharedParam& shared);
/// Its default, and those that differ by policy: "0; streaming-llm: 4". `own`: defaults that
/// replace the policies'.
std::string default_text(const SharedParam& shared, const PolicyParams& own = {});

/// An option for every parameter of every policy. Its value goes into settings.params; `settings`
/// must outlive the command.
void add_policy_options(CLI::App& command, CacheSettings& settings);
/// Notes which of them were typed, before other sources add theirs. The command's final callback
/// does it; one that replaces the callback calls this.
void note_typed_options(const CLI::App& command, CacheSettings& settings);

/// What the options say of this policy, over what the model's file recommends (nullptr: nothing);
/// parameters of other policies are left out.
PolicyConfig policy_config(const CacheSettings& settings, const std::string& policy,
                           const ModelInfo* model);
/// The parameters of this policy that have their values from the model's file.
std::vector<std::string> params_of_model(const CacheSettings& settings, const std::string& policy,
                                         const ModelInfo& model);

/// Throws kUsage when an option was typed that none of these policies has. Settings that come from
/// the environment or a file may be for other commands; "full" ignores all of them, so that its
/// name alone switches compression off.
void check_policy_options(const CacheSettings& settings, const std::vector<std::string>& policies);

}  // namespace snapkv::cli
