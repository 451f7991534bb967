// SPDX-License-Identifier: MIT
#include "cli/common/table_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/parse_number.h"
#include "cli/common/number_options.h"
#include "cli/common/policy_options.h"
#include "snapkv/options.h"

namespace snapkv::cli {
using Type = OptionInfo::Type;

std::string type_text(const OptionInfo& info) {
  switch (info.type) {
    case Type::integer:
      return "N";
    case Type::real:
      return "X";
    case Type::bytes:
      return "SIZE";
    case Type::word:
      return fmt::format("{}", fmt::join(info.words, "|"));
    case Type::text:
    case Type::texts:
      return info.name.ends_with("_dir") ? "DIR" : "TEXT";
    case Type::boolean:
      break;
  }
  return "";
}

namespace {

/// Whether a mention of an error is of an option; others are numbers that a program gives.
bool is_option(std::string_view name) {
  const std::vector<SharedParam>& params = shared_params();
  return name == "logit_bias" || model_option_table().find(name) != nullptr ||
         session_option_table().find(name) != nullptr ||
         sampler_option_table().find(name) != nullptr ||
         generator_option_table().find(name) != nullptr ||
         std::any_of(params.begin(), params.end(),
                     [&](const SharedParam& shared) { return shared.param->option == name; });
}

void add_check(CLI::Option& option, const OptionInfo& info) {
  const int64_t least = whole_limit(info.least), most = whole_limit(info.most);
  if (info.type == Type::integer) option.check(whole_number(least, most));
  if (info.type == Type::bytes) option.transform(byte_size(least, most));
  if (info.type == Type::real) option.check(real_number(info.least, info.most));
  if (info.type == Type::word) {
    option.check(CLI::Validator(
        [&info](const std::string& text) {
          if (std::count(info.words.begin(), info.words.end(), text) > 0) return std::string();
          return fmt::format("'{}' is not {}", text, range_text(info));
        },
        ""));
  }
}

}  // namespace

std::string flag_names(std::string_view option) {
  static const std::map<std::string, std::string, std::less<>> kOwn = {
      {"model", "-m,--model"},          {"n_threads", "-t,--threads"},
      {"n_ctx", "-c,--ctx-size"},       {"temperature", "--temp"},
      {"max_tokens", "-n,--n-predict"}, {"logit_bias", "-l,--logit-bias"}};
  if (const auto own = kOwn.find(option); own != kOwn.end()) return own->second;
  std::string name(option);
  for (const SharedParam& shared : shared_params()) {
    if (shared.param->option == option) name = "kv_" + shared.param->label;
  }
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

std::string flag_of(std::string_view option) {
  if (!is_option(option)) return std::string(option);
  if (option == "decode_reserve") return "reserve for generated tokens";
  const std::string names = flag_names(option);
  return names.substr(names.find("--"));
}

CLI::Option* add_table_option(CLI::App& command, const OptionInfo& info, const OptionValue& value,
                              std::function<void(const OptionValue&)> set) {
  return add_table_option(command, flag_names(info.option), info, value, std::move(set));
}

CLI::Option* add_table_option(CLI::App& command, const std::string& names, const OptionInfo& info,
                              const OptionValue& value,
                              std::function<void(const OptionValue&)> set) {
  if (info.type == Type::boolean) {
    return command.add_flag_function(
        names, [set = std::move(set)](int64_t n) { set(n > 0); }, info.help);
  }
  CLI::Option* const option = command.add_option_function<std::string>(
      names,
      [set = std::move(set), &info](const std::string& text) { set(parse_value(info, text)); },
      info.help);
  add_check(*option, info);
  const std::string shown = value_text(value);
  if (!shown.empty()) option->default_str(shown);
  return option->type_name(type_text(info));
}

void set_group(CLI::Option& option, const std::string& group) { option.group(group); }

}  // namespace snapkv::cli
