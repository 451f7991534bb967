// SPDX-License-Identifier: MIT
#include "policy/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace snapkv {
namespace {

/// The members of PolicyConfig that are parameters, as values. -1 in window_size and sinks means
/// not given.
std::vector<std::pair<std::string_view, PolicyValue>> member_values(const PolicyConfig& config) {
  std::vector<std::pair<std::string_view, PolicyValue>> values = {{"budget", config.budget},
                                                                  {"ratio", config.ratio}};
  if (config.window_size != -1) values.emplace_back("window_size", int64_t{config.window_size});
  if (config.sinks != -1) values.emplace_back("sinks", int64_t{config.sinks});
  return values;
}

bool is_member(std::string_view name) {
  return name == "budget" || name == "ratio" || name == "window_size" || name == "sinks";
}

[[noreturn]] void fail_unknown(const PolicyInfo& info, std::string_view param) {
  std::vector<std::string> names;
  for (const PolicyParam& known : info.params) names.push_back(known.name);
  fail(ErrorCode::kUsage, "policy \"{}\" has no parameter \"{}\"; it has: {}", info.name, param,
       names.empty() ? "none" : fmt::to_string(fmt::join(names, ", ")));
}

/// The least attention of kAutoBudget (docs/quality.md).
constexpr double kAutoAttention = 0.05;
/// The parameter that it is a value of.
constexpr const char* kLeastAttention = "least_attention";

void set_auto_budget(PolicyConfig& config) {
  const PolicyInfo& info = policy_info(config.name);
  const PolicyParam* least = info.find(kLeastAttention);
  if (least == nullptr) {
    fail(ErrorCode::kUsage, "{} {} is for policy \"{}\"; \"{}\" needs a number of rows",
         param_name("budget"), kAutoBudget, kDefaultPolicy, info.name);
  }
  config.budget = PolicyConfig{}.budget;
  config.params[least->name] = kAutoAttention;
}

bool is_auto(std::string_view name, const PolicyValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  return name == "budget" && word != nullptr && *word == kAutoBudget;
}

}  // namespace

OptionName param_name(std::string_view name) {
  for (const PolicyInfo& info : all_policies()) {
    if (const PolicyParam* param = info.find(name)) return OptionName(*param);
  }
  return OptionName(name);
}

std::vector<std::pair<size_t, PolicyValue>> given_values(const PolicyInfo& info,
                                                         const PolicyConfig& config) {
  std::vector<std::pair<size_t, PolicyValue>> values;
  const auto add = [&](std::string_view name, const PolicyValue& value) {
    const PolicyParam* param = info.find(name);
    if (param == nullptr) return false;
    values.emplace_back(param - info.params.data(), check_value(*param, value));
    return true;
  };
  for (const auto& [name, value] : member_values(config)) add(name, value);
  for (const auto& [name, value] : config.params) {
    if (is_member(name)) {
      fail(ErrorCode::kUsage, "{} is a member of PolicyConfig; it can't be in params too", name);
    }
    if (!add(name, value)) fail_unknown(info, name);
  }
  return values;
}

// ---------------------------------------------------------------- the public functions

const PolicyParam* PolicyInfo::find(std::string_view param) const {
  const auto found = std::find_if(params.begin(), params.end(),
                                  [&](const PolicyParam& p) { return p.name == param; });
  return found != params.end() ? &*found : nullptr;
}

void set_param(PolicyConfig& config, std::string_view name, const PolicyValue& value) {
  const PolicyInfo& info = policy_info(config.name);
  const PolicyParam* param = info.find(name);
  if (param == nullptr) fail_unknown(info, name);
  if (is_auto(name, value)) return set_auto_budget(config);
  const PolicyValue checked = check_value(*param, value);
  if (name == "budget") {
    config.budget = std::get<int64_t>(checked);
  } else if (name == "ratio") {
    config.ratio = std::get<double>(checked);
  } else if (name == "window_size") {
    config.window_size = static_cast<int>(std::get<int64_t>(checked));
  } else if (name == "sinks") {
    config.sinks = static_cast<int>(std::get<int64_t>(checked));
  } else {
    config.params[param->name] = checked;
  }
}

PolicyValue parse_param(const PolicyParam& param, std::string_view text) {
  if (param.name == "budget" && text == kAutoBudget) return std::string(text);
  return parse_value(param, text);
}

void set_param_text(PolicyConfig& config, std::string_view name, std::string_view text) {
  const PolicyInfo& info = policy_info(config.name);
  const PolicyParam* param = info.find(name);
  if (param == nullptr) fail_unknown(info, name);
  set_param(config, name, parse_param(*param, text));
}

PolicyValue policy_value(const PolicyConfig& config, std::string_view name) {
  for (const PolicySetting& setting : policy_settings(config)) {
    if (setting.param->name == name) return setting.value;
  }
  const PolicyInfo& info = policy_info(config.name);
  fail_unknown(info, name);
}

bool keeps_by_attention(const PolicyConfig& config) {
  return policy_info(config.name).find(kLeastAttention) != nullptr &&
         std::get<double>(policy_value(config, kLeastAttention)) > 0;
}

int policy_window(const PolicyConfig& config) {
  if (policy_info(config.name).find("window_size") == nullptr) return 0;
  return static_cast<int>(std::get<int64_t>(policy_value(config, "window_size")));
}

std::string describe_params(const PolicyConfig& config) {
  std::vector<std::string> parts;
  for (const auto& [param, value] : policy_settings(config)) {
    if (param->name == "budget" || param->name == "ratio") continue;
    if (!param->always_named && value == param->default_value) continue;
    if (param->type == PolicyParam::Type::boolean) {
      parts.push_back((std::get<bool>(value) ? "" : "not ") + param->label);
    } else if (param->type == PolicyParam::Type::word) {
      parts.push_back(value_text(value) + " " + param->label);
    } else {
      parts.push_back(param->label + " " + value_text(value));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace snapkv
