// SPDX-License-Identifier: MIT
// PolicyDefinition: what a policy's file tells the registry about it: its description, and how to
// make a policy from a configuration.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "policy/params.h"
#include "policy/policy.h"

namespace snapkv {

struct PolicyDefinition {
  PolicyInfo info;
  /// `info` is the registry's permanent copy of the member above. Throws as validate() does.
  std::function<std::unique_ptr<Policy>(const PolicyInfo& info, const PolicyConfig& config)> make;
  /// The values in effect, in the table's order. Throws as validate() does, except for parameters
  /// that contradict each other.
  std::function<std::vector<PolicyValue>(const PolicyInfo& info, const PolicyConfig& config)>
      values;
};

/// Sets parameters that depend on others, where the configuration does not say them. A policy whose
/// parameters do overloads it.
template <typename Params>
void settle(Params& /*params*/, const PolicyConfig& /*config*/) {}

/// `PolicyT` is constructed from (info, config, params) and has a struct Params and a check of it:
///   check(const Params& params)   throws Error{kUsage}
template <typename PolicyT>
PolicyDefinition define_policy(PolicyInfo info, Fields<typename PolicyT::Params> fields) {
  using Params = typename PolicyT::Params;
  for (Field<Params>& f : fields) {
    f.info.default_value = f.get(Params{});
    info.params.push_back(f.info);
  }
  PolicyDefinition definition;
  definition.info = std::move(info);
  definition.make = [fields](const PolicyInfo& registered,
                             const PolicyConfig& config) -> std::unique_ptr<Policy> {
    Params params = read_params(registered, fields, config);
    settle(params, config);
    check(params);
    return std::make_unique<PolicyT>(registered, config, params);
  };
  definition.values = [fields](const PolicyInfo& registered, const PolicyConfig& config) {
    Params params = read_params(registered, fields, config);
    settle(params, config);
    std::vector<PolicyValue> values;
    for (const Field<Params>& f : fields) values.push_back(f.get(params));
    return values;
  };
  return definition;
}

}  // namespace snapkv
