// SPDX-License-Identifier: MIT
// options.h: the table's rows and the parameters of policies, by name.
#include "snapkv/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "bindings/option_table.h"

namespace snapkv {
namespace {

constexpr std::string_view kPolicyPrefix = "kv_";

const OptionRow* find_row(std::string_view name) {
  const std::vector<OptionRow>& table = option_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const OptionRow& row) { return row.info.name == name; });
  return found != table.end() ? &*found : nullptr;
}

/// "kernel_size" of "kv_kernel_size" if the policy has such a parameter.
std::optional<std::string> policy_param(const PolicyInfo& policy, std::string_view name) {
  if (!name.starts_with(kPolicyPrefix)) return std::nullopt;
  const std::string param(name.substr(kPolicyPrefix.size()));
  if (policy.find(param) == nullptr) return std::nullopt;
  return param;
}

OptionInfo::Type type_of(const PolicyParam& param) {
  switch (param.type) {
    case PolicyParam::Type::boolean:
      return OptionInfo::Type::boolean;
    case PolicyParam::Type::integer:
      return OptionInfo::Type::integer;
    case PolicyParam::Type::real:
      return OptionInfo::Type::real;
    case PolicyParam::Type::word:
      return OptionInfo::Type::word;
  }
  return OptionInfo::Type::text;
}

[[noreturn]] void fail_unknown(std::string_view option, std::string_view policy) {
  std::vector<std::string> names;
  for (const OptionInfo& info : list_options(policy)) names.push_back(info.name);
  fail(ErrorCode::kUsage, "there is no option \"{}\"; with kv_policy {} there are: {}", option,
       policy, fmt::join(names, ", "));
}

}  // namespace

std::string_view name(OptionInfo::Group group) {
  constexpr std::string_view kNames[] = {"model", "session", "sampler", "answer"};
  return kNames[static_cast<size_t>(group)];
}

std::string_view name(OptionInfo::Type type) {
  constexpr std::string_view kNames[] = {"boolean", "integer", "real", "bytes",
                                         "word",    "text",    "texts"};
  return kNames[static_cast<size_t>(type)];
}

std::vector<OptionInfo> list_options(std::string_view policy) {
  const PolicyInfo& chosen = policy_info(policy);
  std::vector<OptionInfo> options;
  for (const OptionRow& row : option_table()) options.push_back(row.info);
  for (const PolicyParam& param : chosen.params) {
    options.push_back({.name = std::string(kPolicyPrefix) + param.name,
                       .group = OptionInfo::Group::session,
                       .type = type_of(param),
                       .default_text = value_text(param.default_value),
                       .range = range_text(param),
                       .words = param.words,
                       .help = param.help});
  }
  return options;
}

std::string list_options_json(std::string_view policy) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OptionInfo& info : list_options(policy)) {
    nlohmann::ordered_json option = {{"name", info.name},
                                     {"group", name(info.group)},
                                     {"type", name(info.type)},
                                     {"default", info.default_text},
                                     {"range", info.range},
                                     {"help", info.help}};
    if (!info.words.empty()) option["words"] = info.words;
    list.push_back(std::move(option));
  }
  return list.dump();
}

void set_option(EngineOptions& options, std::string_view name, std::string_view text) {
  if (const OptionRow* row = find_row(name)) return row->set(options, text);
  PolicyConfig& kv = options.session.kv;
  const std::optional<std::string> param = policy_param(policy_info(kv.name), name);
  if (!param) fail_unknown(name, kv.name);
  try {
    set_param_text(kv, *param, text);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    const PolicyParam& info = *policy_info(kv.name).find(*param);
    fail(ErrorCode::kUsage, "{} is \"{}\"; it must be {}", name, text, range_text(info));
  }
}

std::string option_text(const EngineOptions& options, std::string_view name) {
  if (const OptionRow* row = find_row(name)) return row->get(options);
  const PolicyConfig& kv = options.session.kv;
  const std::optional<std::string> param = policy_param(policy_info(kv.name), name);
  if (!param) fail_unknown(name, kv.name);
  return value_text(policy_value(kv, *param));
}

}  // namespace snapkv
