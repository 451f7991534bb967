// SPDX-License-Identifier: MIT
// Field tables: all that a policy's file says about each of its parameters, besides the typed
// struct that holds them. Validation, options, records and documentation are made from the tables.
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

/// A table's text for a parameter; type and default come from its member. An open range ends at the
/// limits of the member's type.
struct FieldText {
  const char* name = "";
  const char* help = "";
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool odd = false;
  bool always_named = false;
  const char* label = "";  // for people, if not the name
  const char* flag = "";    // command-line option, if not --kv- and the label
  const char* paper = "";
};

/// A row of a table: the parameter, and how it is written to the struct and read from it.
template <typename Params>
struct Field {
  PolicyParam param;  // the default is read from a Params{} when the policy is defined
  std::function<void(Params&, const PolicyValue&)> set;  // takes check_value()'s result
  std::function<PolicyValue(const Params&)> get;
};

template <typename Params>
using Fields = std::vector<Field<Params>>;

/// The words for an enumeration's values, in their order. Policies with enumerations of their own
/// add an overload.
inline std::span<const char* const> words(Pooling) {
  static constexpr const char* kWords[] = {"max", "avg"};
  return kWords;
}
inline std::span<const char* const> words(GroupReduce) {
  static constexpr const char* kWords[] = {"mean", "max"};
  return kWords;
}

/// Makes a parameter from the text, deriving names that are not given.
PolicyParam make_param(const FieldText& text);

/// The table row for a member that is a bool, an integer, a double or an enumeration.
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

/// Joins tables, whose structs `Params` derives from, into one.
template <typename Params, typename... Bases>
Fields<Params> join(const Fields<Bases>&... tables) {
  Fields<Params> all;
  const auto append = [&all](const auto& table) {
    for (const auto& f : table) all.push_back({f.param, f.set, f.get});
  };
  (append(tables), ...);
  return all;
}

/// A parameter's name in messages.
const std::string& shown_name(const PolicyParam& param, ParamNames names);

/// Same for the parameters of one policy, by their names in the tables.
class ParamNamer {
 public:
  ParamNamer(const PolicyInfo& info, ParamNames names) : info_(info), names_(names) {}
  /// The name in messages of the parameter that the tables call `name`.
  std::string operator()(std::string_view name) const;

 private:
  const PolicyInfo& info_;
  ParamNames names_;
};

/// The value in the parameter's type; a whole number may stand for a real one. Throws
/// Error{kUsage}: "{shown} is 4; it must be odd and at least 1".
PolicyValue check_value(const PolicyParam& param, const PolicyValue& value,
                        const std::string& shown);

/// The checked values that the configuration gives for the policy's parameters, in the table's
/// order, without those it does not give. Throws Error{kUsage} for a parameter that the policy does
/// not have.
std::vector<std::pair<size_t, PolicyValue>> given_values(const PolicyInfo& info,
                                                         const PolicyConfig& config,
                                                         ParamNames names);

/// Reads a configuration into the typed struct.
template <typename Params>
Params read_params(const PolicyInfo& info, const Fields<Params>& fields, const PolicyConfig& config,
                   ParamNames names) {
  Params params;
  for (const auto& [i, value] : given_values(info, config, names)) fields[i].set(params, value);
  return params;
}

}  // namespace snapkv
