// SPDX-License-Identifier: MIT
#include "cli/common/policy_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/parse_number.h"
#include "cli/common/number_options.h"
#include "cli/common/table_options.h"

namespace snapkv::cli {
namespace {

std::string group_of(const SharedParam& shared) {
  if (is_common(shared)) return kCacheGroup;
  std::vector<std::string> names;
  for (const PolicyInfo* info : shared.policies) names.push_back(info->name);
  return fmt::format("{}, for {}", kCacheGroup, fmt::join(names, ", "));
}

bool may_be_auto(const PolicyParam& param) { return param.name == "budget"; }

std::string help_text(const PolicyParam& param) {
  std::string text = param.help;
  const bool is_number =
      param.type == PolicyParam::Type::integer || param.type == PolicyParam::Type::real;
  if (is_number) text += "; " + range_text(param);
  if (may_be_auto(param)) text += "; auto: as many as the question attends to, with snapkv-max";
  if (!param.paper.empty()) text += fmt::format(" (arXiv {})", param.paper);
  return text;
}

/// Whether a model's file may recommend a value for it (ModelInfo::policy_defaults).
bool is_in_models(const PolicyParam& param) {
  return param.name == "window_size" || param.name == "kernel_size";
}

void add_option(CLI::App& command, CacheSettings& settings, const SharedParam& shared) {
  const PolicyParam& param = *shared.param;
  CLI::Option* option = nullptr;
  if (param.type == PolicyParam::Type::boolean) {
    option = command.add_flag_function(
        flag_of(param.option), [&](int64_t n) { settings.params[param.name] = n > 0; },
        help_text(param));
  } else {
    option = command.add_option_function<std::string>(
        flag_of(param.option),
        [&](const std::string& text) { settings.params[param.name] = parse_param(param, text); },
        help_text(param));
    option->type_name(type_text(param) + (may_be_auto(param) ? "|auto" : ""))
        ->default_str(default_text(shared, settings.params) +
                      (is_in_models(param) ? ", or what the model's file says" : ""));
    if (param.type == PolicyParam::Type::integer) {
      option->check(whole_number(whole_limit(param.least), whole_limit(param.most),
                                 may_be_auto(param) ? kAutoBudget : ""));
    } else if (param.type == PolicyParam::Type::real) {
      option->check(real_number(param.least, param.most));
    }
  }
  option->group(group_of(shared));
}

std::vector<SharedParam> make_shared_params() {
  std::vector<SharedParam> all;
  for (const PolicyInfo& info : all_policies()) {
    for (const PolicyParam& param : info.params) {
      const auto same = [&](const SharedParam& s) { return s.param->name == param.name; };
      auto found = std::find_if(all.begin(), all.end(), same);
      if (found == all.end()) found = all.insert(all.end(), {&param, {}});
      found->policies.push_back(&info);
    }
  }
  return all;
}

}  // namespace

const std::vector<SharedParam>& shared_params() {
  static const std::vector<SharedParam> all = make_shared_params();
  return all;
}

bool is_common(const SharedParam& shared) {
  const auto n_with_budget = std::count_if(all_policies().begin(), all_policies().end(),
                                           [](const PolicyInfo& info) { return info.has_budget; });
  return std::ssize(shared.policies) == n_with_budget;
}

std::string default_text(const SharedParam& shared, const PolicyParams& own) {
  const std::string& name = shared.param->name;
  if (const auto found = own.find(name); found != own.end()) return value_text(found->second);
  std::string text = value_text(shared.param->default_value);
  for (const PolicyInfo* info : shared.policies) {
    const PolicyValue& value = info->find(name)->default_value;
    if (value != shared.param->default_value) {
      text += fmt::format("; {}: {}", info->name, value_text(value));
    }
  }
  return text;
}

void add_policy_options(CLI::App& command, CacheSettings& settings) {
  for (const SharedParam& shared : shared_params()) add_option(command, settings, shared);
  // runs before the environment and the configuration file are read
  command.final_callback([&command, &settings] { note_typed_options(command, settings); });
}

void note_typed_options(const CLI::App& command, CacheSettings& settings) {
  for (const SharedParam& shared : shared_params()) {
    const CLI::Option* option = command.get_option_no_throw(flag_of(shared.param->option));
    if (option != nullptr && option->count() > 0) {
      settings.typed_params.push_back(shared.param->name);
    }
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() > 0 && !option->get_lnames().empty()) {
      settings.typed_options.push_back("--" + option->get_lnames().front());
    }
  }
}

PolicyConfig policy_config(const CacheSettings& settings, const std::string& policy,
                           const ModelInfo* model) {
  PolicyConfig config =
      model != nullptr ? recommended_policy(*model, policy) : PolicyConfig{.name = policy};
  for (const auto& [name, value] : settings.params) {
    if (policy_info(policy).find(name) != nullptr) set_param(config, name, value);
  }
  return config;
}

std::vector<std::string> params_of_model(const CacheSettings& settings, const std::string& policy,
                                         const ModelInfo& model) {
  std::vector<std::string> names;
  for (const auto& [name, value] : model.policy_defaults) {
    if (!settings.params.contains(name) && policy_info(policy).find(name) != nullptr) {
      names.push_back(name);
    }
  }
  return names;
}

void check_policy_options(const CacheSettings& settings, const std::vector<std::string>& policies) {
  if (policies.empty() || std::count(policies.begin(), policies.end(), "full") > 0) return;
  for (const std::string& name : settings.typed_params) {
    const bool is_used = std::any_of(policies.begin(), policies.end(), [&](const auto& policy) {
      return policy_info(policy).find(name) != nullptr;
    });
    if (is_used) continue;
    const auto& all = shared_params();
    const auto unused = std::find_if(all.begin(), all.end(),
                                     [&](const SharedParam& s) { return s.param->name == name; });
    std::vector<std::string> flags;
    for (const PolicyParam& param : policy_info(policies.front()).params) {
      flags.push_back(flag_of(param.option));
    }
    fail(ErrorCode::kUsage, "{} is not an option of policy {}, which has: {}",
         flag_of(unused->param->option), fmt::join(policies, ", "), fmt::join(flags, ", "));
  }
}

}  // namespace snapkv::cli
