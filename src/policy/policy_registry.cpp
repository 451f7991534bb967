// SPDX-License-Identifier: MIT
// Policies by name. Called by the engine, by compress.h and by programs that check their options.
#include "policy/policy_registry.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace snapkv {
namespace {

struct PolicyEntry {
  const char* name;
  std::unique_ptr<Policy> (*make)(const PolicyConfig& config);
};

#define SNAPKV_ENTRY(id, name) {name, make_##id},
constexpr PolicyEntry kPolicies[] = {SNAPKV_POLICIES(SNAPKV_ENTRY)};
#undef SNAPKV_ENTRY

}  // namespace

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyEntry& entry : kPolicies) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Policy> Policy::make(const PolicyConfig& config) {
  for (const PolicyEntry& entry : kPolicies) {
    if (config.name == entry.name) return entry.make(config);
  }
  std::string known;
  for (const PolicyEntry& entry : kPolicies) {
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  fail(ErrorCode::kUsage, "policy \"{}\" is not known; known are: {}", config.name, known);
}

void validate(const PolicyConfig& config) { Policy::make(config); }

}  // namespace snapkv
