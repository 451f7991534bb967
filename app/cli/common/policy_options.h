// SPDX-License-Identifier: MIT
// Options of cache policies, made from the policies' tables (snapkv/policy.h): a parameter declared
// in a policy's file becomes an option of every command that compresses.
#pragma once

#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

/// The option group for all options that decide what is kept, whatever the policy.
inline constexpr const char* kCacheGroup = "KV cache";

/// A parameter, and the policies that have it and share its table.
struct SharedParam {
  const PolicyParam* param = nullptr;  // as declared by the first of them
  std::vector<const PolicyInfo*> policies;
};
/// Returns every parameter once, in the order of the policies' tables.
const std::vector<SharedParam>& shared_params();
/// Whether every policy that drops rows has the parameter.
bool is_common(const SharedParam& shared);
/// Its default and the policies with another: "0; streaming-llm: 4". `own`: defaults that replace
/// the policies'.
std::string default_text(const SharedParam& shared, const PolicyParams& own = {});

/// Adds an option for every parameter of every policy. The values go into settings.params;
/// `settings` must outlive the command.
void add_policy_options(CLI::App& command, CacheSettings& settings);
/// Records which of these options were typed, before other sources set theirs. The command's final
/// callback does this; a callback that replaces it must call this function.
void note_typed_options(const CLI::App& command, CacheSettings& settings);

/// The policy's parameters from the options, else as the model's file recommends (nullptr: it does
/// not); parameters of other policies are left out.
PolicyConfig policy_config(const CacheSettings& settings, const std::string& policy,
                           const ModelInfo* model);
/// Parameters of this policy that take their values from the model's file.
std::vector<std::string> params_of_model(const CacheSettings& settings, const std::string& policy,
                                         const ModelInfo& model);

/// Throws kUsage when an option was typed that none of these policies has. Settings from the
/// environment or a file may be meant for other commands. "full" ignores all of them, so that its
/// name alone turns compression off.
void check_policy_options(const CacheSettings& settings, const std::vector<std::string>& policies);

}  // namespace snapkv::cli
