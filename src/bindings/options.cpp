// SPDX-License-Identifier: MIT
// options.h: the rows of all tables, the parameters of policies and stop strings, by name.
#include "snapkv/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/suggest.h"

namespace snapkv {
namespace {

constexpr std::string_view kPolicyPrefix = "kv_";
constexpr std::string_view kStop = "stop";

/// Calls `use(table, options of the table's struct)` for the table that has the option; returns
/// whether there is one.
template <typename Options, typename Use>
bool with_table(Options& options, std::string_view name, Use use) {
  const auto one = [&](const auto& table, auto& of_table) {
    if (table.find(name) == nullptr) return false;
    use(table, of_table);
    return true;
  };
  return one(model_option_table(), options.model) || one(session_option_table(), options.session) ||
         one(sampler_option_table(), options.sampler) ||
         one(generator_option_table(), options.answer);
}

/// The parameter of the policy that an option sets; nullptr if there is none.
const PolicyParam* policy_param(const PolicyInfo& policy, std::string_view option) {
  if (!option.starts_with(kPolicyPrefix)) return nullptr;
  return policy.find(option.substr(kPolicyPrefix.size()));
}

OptionInfo stop_info() {
  OptionInfo info;
  info.name = info.option = info.label = kStop;
  info.group = OptionInfo::Group::answer;
  info.type = OptionInfo::Type::texts;
  info.default_value = std::string();
  info.help = "The answer ends before this text; may be set several times";
  return info;
}

void add_stop(GeneratorOptions& answer, std::string_view text) {
  TextStream({std::string(text)});  // refuses what no stop string can be
  answer.stops.emplace_back(text);
}

[[noreturn]] void fail_unknown(std::string_view option, std::string_view policy) {
  std::vector<std::string> names;
  for (const OptionInfo& info : list_options(policy)) names.push_back(info.option);
  if (const std::string near = nearest_name(option, names); !near.empty()) {
    fail(ErrorCode::kUsage, "there is no option \"{}\" with kv_policy {}; did you mean {}?", option,
         policy, near);
  }
  fail(ErrorCode::kUsage, "there is no option \"{}\"; with kv_policy {} there are: {}", option,
       policy, fmt::join(names, ", "));
}

}  // namespace

std::vector<OptionInfo> list_options(std::string_view policy) {
  const PolicyInfo& chosen = policy_info(policy);
  std::vector<OptionInfo> options;
  const auto add = [&](const std::vector<OptionInfo>& infos) {
    options.insert(options.end(), infos.begin(), infos.end());
  };
  add(model_option_table().infos());
  add(session_option_table().infos());
  add(sampler_option_table().infos());
  add(generator_option_table().infos());
  options.push_back(stop_info());
  add(chosen.params);
  return options;
}

std::string list_options_json(std::string_view policy) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const OptionInfo& info : list_options(policy)) {
    nlohmann::ordered_json option = {
        {"name", info.option},       {"group", name(info.group)},
        {"type", name(info.type)},   {"default", value_text(info.default_value)},
        {"range", range_text(info)}, {"help", info.help}};
    if (info.type == OptionInfo::Type::integer || info.type == OptionInfo::Type::real) {
      option["least"] = info.least;
      option["most"] = info.most;
    }
    if (!info.words.empty()) option["words"] = info.words;
    list.push_back(std::move(option));
  }
  return list.dump();
}

void set_option(EngineOptions& options, std::string_view name, std::string_view text) {
  if (name == kStop) return add_stop(options.answer, text);
  const auto set = [&](const auto& table, auto& of_table) {
    table.set(of_table, name, parse_value(*table.find(name), text));
  };
  if (with_table(options, name, set)) return;
  PolicyConfig& kv = options.session.kv;
  const PolicyParam* param = policy_param(policy_info(kv.name), name);
  if (param == nullptr) fail_unknown(name, kv.name);
  try {
    set_param_text(kv, param->name, text);
  } catch (const Error& e) {
    throw Error(e.code(), e.message([](std::string_view option) { return std::string(option); }));
  }
}

std::string option_text(const EngineOptions& options, std::string_view name) {
  if (name == kStop) return nlohmann::json(options.answer.stops).dump();
  std::string text;
  const auto get = [&](const auto& table, const auto& of_table) {
    text = value_text(table.get(of_table, name));
  };
  if (with_table(options, name, get)) return text;
  const PolicyConfig& kv = options.session.kv;
  const PolicyParam* param = policy_param(policy_info(kv.name), name);
  if (param == nullptr) fail_unknown(name, kv.name);
  return value_text(policy_value(kv, param->name));
}

}  // namespace snapkv
