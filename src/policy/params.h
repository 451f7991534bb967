// SPDX-License-Identifier: MIT
// Field tables: what a policy's file says once of each of its parameters, beside the typed struct
// that holds them. Everything else (validation, options, records, documentation) is made from the
// tables. Used by the policies of this folder; the registry hands the tables out.
//
//   struct ChunkKvParams : RowParams {
//     int chunk_length = 20;
//   };
//   const auto fields = join<ChunkKvParams>(row_fields(), Fields<ChunkKvParams>{
//       field(&ChunkKvParams::chunk_length,
//             {.name = "chunk_length", .help = "Rows kept or dropped together", .least = 1})});
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/ops.h"
#include "snapkv/policy.h"

namespace snapkv {

/// What a table says of a parameter; type and default are its member's. A range that is left open
/// ends where the member's type does.
struct FieldText {
  const char* name = "";
  const char* help = "";
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool odd = false;
  bool always_named = false;
  const char* record = "";  // in records, if it isn't the name
  const char* flag = "";    // of the command, if it isn't --kv- and the record's name
  const char* paper = "";
};

/// A row of a table: the parameter, and how it gets into the struct and out of it.
template <typename Params>
struct Field {
  PolicyParam param;  // its default is read from a Params{} when the policy is defined
  std::function<void(Params&, const PolicyValue&)> set;  // of a value that check_value() returned
  std::function<PolicyValue(const Params&)> get;
};

template <typename Params>
using Fields = std::vector<Field<Params>>;

/// The words that stand for an enumeration's values, in their order. Policies whose parameters are
/// enumerations of their own add an overload beside them.
inline std::span<const char* const> words(Pooling) {
  static constexpr const char* kWords[] = {"max", "avg"};
  return kWords;
}
inline std::span<const char* const> words(GroupReduce) {
  static constexpr const char* kWords[] = {"mean", "max"};
  return kWords;
}

/// Fills what the text says, with the names derived from each other.
PolicyParam make_param(const FieldText& text);

/// The row of a member that is a bool, an integer, a double or an enumeration.
template <typename Params, typename T>
Field<Params> field(T Params::*member, const FieldText& text) {
  Field<Params> f;
  f.param = make_param(text);
  if constexpr (std::is_same_v<T, bool>) {
    f.param.type = PolicyParam::Type::boolean;
    f.set = [member](Params& p, const PolicyValue& v) { p.*member = std::get<bool>(v); };
    f.get = [member](const Params& p) { return PolicyValue(p.*member); };
  } else if constexpr (std::is_enum_v<T>) {
    f.param.type = PolicyParam::Type::word;
    f.param.words.assign(words(T()).begin(), words(T()).end());
    f.set = [member, known = f.param.words](Params& p, const PolicyValue& v) {
      const auto word = std::find(known.begin(), known.end(), std::get<std::string>(v));
      p.*member = static_cast<T>(word - known.begin());
    };
    f.get = [member, known = f.param.words](const Params& p) {
      return PolicyValue(known[static_cast<size_t>(p.*member)]);
    };
  } else if constexpr (std::is_integral_v<T>) {
    f.param.type = PolicyParam::Type::integer;
    f.param.least = std::max(text.least, static_cast<double>(std::numeric_limits<T>::lowest()));
    f.param.most = std::min(text.most, static_cast<double>(std::numeric_limits<T>::max()));
    f.set = [member](Params& p, const PolicyValue& v) {
      p.*member = static_cast<T>(std::get<int64_t>(v));
    };
    f.get = [member](const Params& p) { return PolicyValue(int64_t{p.*member}); };
  } else {
    static_assert(std::is_same_v<T, double>, "a parameter is a bool, an int, a double or an enum");
    f.param.type = PolicyParam::Type::real;
    f.set = [member](Params& p, const PolicyValue& v) { p.*member = std::get<double>(v); };
    f.get = [member](const Params& p) { return PolicyValue(p.*member); };
  }
  return f;
}

/// One table of several, whose structs `Params` derives from.
template <typename Params, typename... Bases>
Fields<Params> join(const Fields<Bases>&... tables) {
  Fields<Params> all;
  const auto append = [&all](const auto& table) {
    for (const auto& f : table) all.push_back({f.param, f.set, f.get});
  };
  (append(tables), ...);
  return all;
}

/// What messages call a parameter.
const std::string& shown_name(const PolicyParam& param, ParamNames names);

/// The same for the parameters of one policy, by the names that the tables have.
class ParamNamer {
 public:
  ParamNamer(const PolicyInfo& info, ParamNames names) : info_(info), names_(names) {}
  /// The name to show of the parameter that the tables call `name`.
  std::string operator()(std::string_view name) const;

 private:
  const PolicyInfo& info_;
  ParamNames names_;
};

/// The value as the parameter's type holds it: a whole number may stand for a real one. Throws
/// Error{kUsage}: "{shown} is 4; it must be odd and at least 1".
PolicyValue check_value(const PolicyParam& param, const PolicyValue& value,
                        const std::string& shown);

/// What the configuration says of each parameter of the policy, checked, in the table's order;
/// nothing where it is silent. Throws Error{kUsage} for parameters that the policy does not have.
std::vector<std::pair<size_t, PolicyValue>> given_values(const PolicyInfo& info,
                                                         const PolicyConfig& config,
                                                         ParamNames names);

/// The typed struct of a configuration.
template <typename Params>
Params read_params(const PolicyInfo& info, const Fields<Params>& fields, const PolicyConfig& config,
                   ParamNames names) {
  Params params;
  for (const auto& [i, value] : given_values(info, config, names)) fields[i].set(params, value);
  return params;
}

}  // namespace snapkv
