// SPDX-License-Identifier: MIT
#include "policy/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/parse_number.h"

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

std::string known_params(const PolicyInfo& info, ParamNames names_shown) {
  std::vector<std::string> names;
  for (const PolicyParam& param : info.params) names.push_back(shown_name(param, names_shown));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void fail_unknown(const PolicyInfo& info, std::string_view param, ParamNames names) {
  fail(ErrorCode::kUsage, "policy \"{}\" has no parameter \"{}\"; it has: {}", info.name, param,
       known_params(info, names));
}

/// Parses a number if it is all of `text`.
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The value in the parameter's type, if it has that type and is within the range.
std::optional<PolicyValue> in_range(const PolicyParam& param, const PolicyValue& value) {
  const auto within = [&](double v) { return v >= param.least && v <= param.most; };  // not a NaN
  switch (param.type) {
    case PolicyParam::Type::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case PolicyParam::Type::integer:
      if (const auto* n = std::get_if<int64_t>(&value)) {
        if (within(static_cast<double>(*n)) && (!param.odd || *n % 2 != 0)) return value;
      }
      break;
    case PolicyParam::Type::real: {
      const auto* whole = std::get_if<int64_t>(&value);
      const auto* real = std::get_if<double>(&value);
      if (whole != nullptr && within(static_cast<double>(*whole))) {
        return static_cast<double>(*whole);
      }
      if (real != nullptr && within(*real)) return value;
      break;
    }
    case PolicyParam::Type::word: {
      const auto* word = std::get_if<std::string>(&value);
      const auto& known = param.words;
      if (word != nullptr && std::find(known.begin(), known.end(), *word) != known.end()) {
        return value;
      }
      break;
    }
  }
  return std::nullopt;
}

/// Whether the parameter's upper limit is its own and not just that of its type.
bool has_own_limit(const PolicyParam& param) {
  return param.type == PolicyParam::Type::real || param.most < std::numeric_limits<int32_t>::max();
}

/// What a message says to a value that is not a number.
const char* type_prefix(const PolicyParam& param) {
  return param.type == PolicyParam::Type::integer ? "a whole number, "
         : param.type == PolicyParam::Type::real  ? "a number, "
                                                  : "";
}

}  // namespace

PolicyParam make_param(const FieldText& text) {
  PolicyParam p;
  p.name = text.name;
  p.label = *text.label != '\0' ? text.label : text.name;
  p.flag = text.flag;
  if (p.flag.empty()) {
    p.flag = "--kv-" + p.label;
    std::replace(p.flag.begin(), p.flag.end(), '_', '-');
  }
  p.least = text.least;
  p.most = text.most;
  p.odd = text.odd;
  p.always_named = text.always_named;
  p.help = text.help;
  p.paper = text.paper;
  return p;
}

const std::string& shown_name(const PolicyParam& param, ParamNames names) {
  return names == ParamNames::flags ? param.flag : param.name;
}

std::string ParamNamer::operator()(std::string_view name) const {
  const PolicyParam* param = info_.find(name);
  return param != nullptr ? shown_name(*param, names_) : std::string(name);
}

PolicyValue check_value(const PolicyParam& param, const PolicyValue& value,
                        const std::string& shown) {
  if (std::optional<PolicyValue> checked = in_range(param, value)) return *checked;
  const auto* number = std::get_if<int64_t>(&value);
  const bool is_too_long =
      !has_own_limit(param) && number != nullptr && static_cast<double>(*number) > param.most;
  fail(ErrorCode::kUsage, "{} is {}; it must be {}{}{}", shown, value_text(value),
       type_prefix(param), range_text(param),
       is_too_long ? fmt::format(" and at most {}", whole_limit(param.most)) : "");
}

std::vector<std::pair<size_t, PolicyValue>> given_values(const PolicyInfo& info,
                                                         const PolicyConfig& config,
                                                         ParamNames names) {
  std::vector<std::pair<size_t, PolicyValue>> values;
  const auto add = [&](std::string_view name, const PolicyValue& value) {
    const PolicyParam* param = info.find(name);
    if (param == nullptr) return false;
    values.emplace_back(param - info.params.data(),
                        check_value(*param, value, shown_name(*param, names)));
    return true;
  };
  for (const auto& [name, value] : member_values(config)) add(name, value);
  for (const auto& [name, value] : config.params) {
    if (is_member(name)) {
      fail(ErrorCode::kUsage, "{} is a member of PolicyConfig; it can't be in params too", name);
    }
    if (!add(name, value)) fail_unknown(info, name, names);
  }
  return values;
}

// ---------------------------------------------------------------- the public functions

const PolicyParam* PolicyInfo::find(std::string_view param) const {
  const auto found = std::find_if(params.begin(), params.end(),
                                  [&](const PolicyParam& p) { return p.name == param; });
  return found != params.end() ? &*found : nullptr;
}

std::string range_text(const PolicyParam& param) {
  switch (param.type) {
    case PolicyParam::Type::boolean:
      return "true or false";
    case PolicyParam::Type::word:
      return fmt::format("{}", fmt::join(param.words, " or "));
    case PolicyParam::Type::integer:
    case PolicyParam::Type::real:
      break;
  }
  const std::string odd = param.odd ? "odd and " : "";
  if (!has_own_limit(param)) return odd + fmt::format("at least {}", param.least);
  return odd + fmt::format("from {} to {}", param.least, param.most);
}

std::string value_text(const PolicyValue& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

PolicyValue parse_value(const PolicyParam& param, std::string_view text, ParamNames names) {
  std::optional<PolicyValue> value;
  switch (param.type) {
    case PolicyParam::Type::boolean:
      if (text == "true" || text == "1") value = true;
      if (text == "false" || text == "0") value = false;
      break;
    case PolicyParam::Type::integer:
      if (const auto n = parse_number<int64_t>(text)) value = *n;
      break;
    case PolicyParam::Type::real:
      if (const auto x = parse_number<double>(text)) value = *x;
      break;
    case PolicyParam::Type::word:
      break;  // the text is the value
  }
  return check_value(param, value.value_or(std::string(text)), shown_name(param, names));
}

void set_param(PolicyConfig& config, std::string_view name, const PolicyValue& value) {
  const PolicyInfo& info = policy_info(config.name);
  const PolicyParam* param = info.find(name);
  if (param == nullptr) fail_unknown(info, name, ParamNames::fields);
  const PolicyValue checked = check_value(*param, value, param->name);
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

void set_param_text(PolicyConfig& config, std::string_view name, std::string_view text) {
  const PolicyInfo& info = policy_info(config.name);
  const PolicyParam* param = info.find(name);
  if (param == nullptr) fail_unknown(info, name, ParamNames::fields);
  set_param(config, name, parse_value(*param, text, ParamNames::fields));
}

PolicyValue policy_value(const PolicyConfig& config, std::string_view name) {
  for (const PolicySetting& setting : policy_settings(config)) {
    if (setting.param->name == name) return setting.value;
  }
  const PolicyInfo& info = policy_info(config.name);
  fail_unknown(info, name, ParamNames::fields);
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
