// SPDX-License-Identifier: MIT
// Which positions of a prompt's KV cache are kept: the policy, its parameters, and the tables that
// describe them. The tables come from the policies' own files (src/policy); options, records and
// documentation are made from them. docs/policies.md explains every policy.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/option_table.h"

namespace snapkv {

/// The value of a parameter: a bool, a whole number, a real number, or a word such as "max".
using PolicyValue = OptionValue;
/// Values by the parameters' names: {{"kernel_size", 15}, {"pooling", "avg"}}.
using PolicyParams = std::map<std::string, PolicyValue, std::less<>>;

/// The default policy of the command and the server: the best one on questions about real texts
/// (docs/quality.md). PolicyConfig's own default is the paper's.
inline constexpr const char* kDefaultPolicy = "snapkv-max";

/// A selection policy. The defaults are the papers'.
struct PolicyConfig {
  std::string name = "snapkv";  ///< policy_names() lists all
  // Parameters of every policy except "full", which keeps all rows and ignores them.
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

/// Throws Error{kUsage} naming policy, parameter, value and range if the configuration is invalid:
/// an unknown policy, a parameter that the policy does not have, a value of another type or out of
/// range, a budget that leaves nothing beside window and sinks.
void validate(const PolicyConfig& config);

// ---------------------------------------------------------------- the tables

/// One parameter of one policy: a bool, a whole or real number, or a word. Its OptionInfo::option
/// is its name with "kv_" before it.
using PolicyParam = OptionInfo;

/// One policy.
struct PolicyInfo {
  std::string name = {};
  std::string score = {};      ///< one line: the score of a row before the window
  std::string paper = {};      ///< arXiv number; may be empty
  std::string reads = {};      ///< the parts of a layer that the score depends on: "window, keys"
  bool has_budget = true;      ///< false: every row is kept
  bool observes = false;       ///< needs every query of the prompt, which only the engine has
  bool shares_budget = false;  ///< heads of a layer take rows from each other
  /// All layers and heads take rows from each other, once, as a session's first prompt is read:
  /// later turns are kept whole.
  bool shares_layers = false;
  bool replays = false;  ///< reads a prompt twice: as it is, and as the model repeats it
  std::vector<PolicyParam> params = {};

  /// nullptr if the policy has no parameter of this name.
  const PolicyParam* find(std::string_view param) const;
};

/// All policies, in the order of policy_names().
const std::vector<PolicyInfo>& all_policies();
/// Throws Error{kUsage} naming the available policies.
const PolicyInfo& policy_info(std::string_view name);

/// As a budget: as many rows as the question attends to, at most PolicyConfig's default. It sets
/// least_attention, and is for policies that have that: snapkv-max.
inline constexpr const char* kAutoBudget = "auto";
/// Whether the policy may keep fewer rows than its budget: those that get at least some share of
/// the question's attention, as with kAutoBudget. Throws as validate() does.
bool keeps_by_attention(const PolicyConfig& config);

/// Sets a parameter of config.name, wherever it is stored. The value of "budget" may be
/// kAutoBudget. Throws Error{kUsage} as validate() does.
void set_param(PolicyConfig& config, std::string_view name, const PolicyValue& value);
/// A parameter's value from its text. Throws Error{kUsage} as parse_value() does.
PolicyValue parse_param(const PolicyParam& param, std::string_view text);
/// set_param() of the value as text.
void set_param_text(PolicyConfig& config, std::string_view name, std::string_view text);

/// A parameter with the value in effect, which may be its default.
struct PolicySetting {
  const PolicyParam* param = nullptr;
  PolicyValue value;
};
/// Every parameter of config.name, in the table's order. Throws as validate() does.
std::vector<PolicySetting> policy_settings(const PolicyConfig& config);
/// The value in effect of one parameter. Throws Error{kUsage} if the policy does not have it.
PolicyValue policy_value(const PolicyConfig& config, std::string_view name);

/// The window_size in effect: the number of queries that vote and whose positions are always kept;
/// 0 for a policy without a window. Throws as validate() does.
int policy_window(const PolicyConfig& config);

/// "window 16, kernel 15, avg pooling": the parameters with OptionInfo::always_named, and every
/// other one except the budget that is not at its default.
std::string describe_params(const PolicyConfig& config);

}  // namespace snapkv
