// SPDX-License-Identifier: MIT
// Policies by name.
#include "policy/policy_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace snapkv {
namespace {

const std::vector<PolicyDefinition>& definitions() {
#define SNAPKV_ENTRY(id) id##_policy(),
  static const std::vector<PolicyDefinition> all = {SNAPKV_POLICIES(SNAPKV_ENTRY)};
#undef SNAPKV_ENTRY
  return all;
}

/// Index in definitions() and all_policies(). Throws Error{kUsage}.
size_t index_of(std::string_view name) {
  const std::vector<PolicyInfo>& infos = all_policies();
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name) return i;
  }
  fail(ErrorCode::kUsage, "policy \"{}\" is not known; known are: {}", name,
       fmt::join(policy_names(), ", "));
}

}  // namespace

const std::vector<PolicyInfo>& all_policies() {
  static const std::vector<PolicyInfo> infos = [] {
    std::vector<PolicyInfo> all;
    for (const PolicyDefinition& definition : definitions()) all.push_back(definition.info);
    return all;
  }();
  return infos;
}

const PolicyInfo& policy_info(std::string_view name) { return all_policies()[index_of(name)]; }

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyInfo& info : all_policies()) names.push_back(info.name);
  return names;
}

std::vector<PolicySetting> policy_settings(const PolicyConfig& config) {
  const size_t i = index_of(config.name);
  const PolicyInfo& info = all_policies()[i];
  const std::vector<PolicyValue> values = definitions()[i].values(info, config);
  std::vector<PolicySetting> settings;
  for (size_t p = 0; p < values.size(); ++p) settings.push_back({&info.params[p], values[p]});
  return settings;
}

std::unique_ptr<Policy> Policy::make(const PolicyConfig& config) {
  const size_t i = index_of(config.name);
  return definitions()[i].make(all_policies()[i], config);
}

void validate(const PolicyConfig& config) { Policy::make(config); }

}  // namespace snapkv
