// SPDX-License-Identifier: MIT
// PolicyDefinition: a policy as its file defines it and the registry keeps it: what it is, and how
// to make one of a configuration.
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
  /// `info` is the registry's copy of the one above, which stays. Throws as validate().
  std::function<std::unique_ptr<Policy>(const PolicyInfo& info, const PolicyConfig& config,
                                        ParamNames names)>
      make;
  /// The values in force, in the table's order. Throws as validate(), but for parameters that
  /// contradict each other.
  std::function<std::vector<PolicyValue>(const PolicyInfo& info, const PolicyConfig& config)>
      values;
};

/// `PolicyT` has a struct Params that can be checked, and is made of (info, config, params):
///   check(const Params& params, const ParamNamer& name)   throws Error{kUsage}
template <typename PolicyT>
PolicyDefinition define_policy(PolicyInfo info, Fields<typename PolicyT::Params> fields) {
  using Params = typename PolicyT::Params;
  for (Field<Params>& f : fields) {
    f.param.default_value = f.get(Params{});
    info.params.push_back(f.param);
  }
  PolicyDefinition definition;
  definition.info = std::move(info);
  definition.make = [fields](const PolicyInfo& registered, const PolicyConfig& config,
                             ParamNames names) -> std::unique_ptr<Policy> {
    const Params params = read_params(registered, fields, config, names);
    check(params, ParamNamer(registered, names));
    return std::make_unique<PolicyT>(registered, config, params);
  };
  definition.values = [fields](const PolicyInfo& registered, const PolicyConfig& config) {
    const Params params = read_params(registered, fields, config, ParamNames::fields);
    std::vector<PolicyValue> values;
    for (const Field<Params>& f : fields) values.push_back(f.get(params));
    return values;
  };
  return definition;
}

}  // namespace snapkv
