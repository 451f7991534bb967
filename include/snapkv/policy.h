// SPDX-License-Identifier: MIT
// Which positions of a prompt's KV cache are kept: the policy, its parameters, and the tables that
// describe them. The tables come from the policies' own files (src/policy); options, records and
// documentation are made from them. docs/policies.md explains every policy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/variant.h"

namespace snapkv {

/// The value of a parameter: yes or no, a whole number, a number, or a word such as "max".
using PolicyValue = Variant<bool, int64_t, double, std::string>;
/// Values by the parameters' names: {{"kernel_size", 15}, {"pooling", "avg"}}.
using PolicyParams = std::map<std::string, PolicyValue, std::less<>>;

/// The policy of the command and the server where none is named: the best one on questions about
/// real texts (docs/quality.md). PolicyConfig's own default is the paper's.
inline constexpr const char* kDefaultPolicy = "snapkv-max";

/// A selection policy. The defaults are the papers'.
struct PolicyConfig {
  std::string name = "snapkv";  ///< policy_names() lists all
  // Parameters of every policy but "full", which keeps all rows and ignores them.
  int64_t budget = 1024;  ///< rows kept per layer and KV head, the window included
  double ratio = 0.0;     ///< if > 0: keep this share of the prompt, (0, 1]; overrides budget
  int window_size = -1;   ///< queries that vote, W; their positions are always kept; -1: the
                          ///< policy's own (32 for most)
  int sinks = -1;         ///< first rows always kept; -1: the policy's own (0 for most)
  /// The policy's other parameters, which policy_info() lists; those that are left out have their
  /// defaults.
  PolicyParams params = {};

  bool operator==(const PolicyConfig&) const = default;
};

/// Names that PolicyConfig::name accepts.
std::vector<std::string> policy_names();

/// By which of its names a message calls a parameter: that of the C++ and C APIs (kernel_size), or
/// the command's option (--kv-kernel).
enum class ParamNames { fields, flags };

/// Throws Error{kUsage} naming policy, parameter, value and range when the configuration can't
/// work: an unknown policy, a parameter that the policy does not have, a value of another type or
/// out of range, a budget that window and sinks leave nothing of.
void validate(const PolicyConfig& config, ParamNames names = ParamNames::fields);

// ---------------------------------------------------------------- the tables

/// One parameter of one policy.
struct PolicyParam {
  enum class Type { boolean, integer, real, word };

  std::string name;    ///< "kernel_size": in PolicyConfig, or the key in PolicyConfig::params
  std::string record;  ///< "kernel": in JSON records
  std::string flag;    ///< "--kv-kernel"
  Type type = Type::integer;
  PolicyValue default_value;
  double least = 0, most = 0;      ///< of numbers: the range, both ends included
  bool odd = false;                ///< of whole numbers: even ones are refused
  bool always_named = false;       ///< in describe_params(), even at its default
  std::vector<std::string> words;  ///< of words: those that are known
  std::string help;                ///< one line
  std::string paper;               ///< arXiv number, where it is not the policy's
};

/// One policy.
struct PolicyInfo {
  std::string name = {};
  std::string score = {};      ///< one line: what the score of a row before the window is
  std::string paper = {};      ///< arXiv number; may be empty
  std::string reads = {};      ///< what of a layer the score depends on: "window, keys"
  bool has_budget = true;      ///< false: every row is kept
  bool observes = false;       ///< needs every query of the prompt, which only the engine has
  bool shares_budget = false;  ///< heads of a layer take rows from each other
  std::vector<PolicyParam> params = {};

  /// nullptr if the policy has no parameter of this name.
  const PolicyParam* find(std::string_view param) const;
};

/// All policies, in the order of policy_names().
const std::vector<PolicyInfo>& all_policies();
/// Throws Error{kUsage} naming the policies that there are.
const PolicyInfo& policy_info(std::string_view name);

/// "odd and from 1 to 65535", "from 0 to 1", "max or avg": what a value must be.
std::string range_text(const PolicyParam& param);
/// "15", "0.2", "avg", "true".
std::string value_text(const PolicyValue& value);
/// The value that `text` writes. Throws Error{kUsage} naming the parameter, the text and the range.
PolicyValue parse_value(const PolicyParam& param, std::string_view text,
                        ParamNames names = ParamNames::fields);

/// Sets a parameter of config.name, wherever it is kept. Throws Error{kUsage} as validate().
void set_param(PolicyConfig& config, std::string_view name, const PolicyValue& value);
/// The same, written as text.
void set_param_text(PolicyConfig& config, std::string_view name, std::string_view text);

/// A parameter with the value that is in force, which may be its default.
struct PolicySetting {
  const PolicyParam* param = nullptr;
  PolicyValue value;
};
/// Every parameter of config.name, in the table's order. Throws as validate().
std::vector<PolicySetting> policy_settings(const PolicyConfig& config);
/// The value in force of one parameter. Throws Error{kUsage} where the policy does not have it.
PolicyValue policy_value(const PolicyConfig& config, std::string_view name);

/// Queries that vote and whose positions are always kept: what window_size is in force; 0 for a
/// policy that has none. Throws as validate().
int policy_window(const PolicyConfig& config);

/// "window 16, kernel 15, avg pooling": what PolicyParam::always_named asks for, and every other
/// parameter but the budget that is not at its default.
std::string describe_params(const PolicyConfig& config);

}  // namespace snapkv
