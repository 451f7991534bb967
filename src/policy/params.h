// SPDX-License-Identifier: MIT
// Field tables: the option tables of policies' parameters, one for each policy's struct.
//
//   struct ChunkKvParams : RowParams {
//     int chunk_length = 20;
//   };
//   const auto fields = join<ChunkKvParams>(row_fields(), Fields<ChunkKvParams>{
//       field(&ChunkKvParams::chunk_length,
//             {.name = "chunk_length", .help = "Rows kept or dropped together", .least = 1})});
#pragma once

#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "base/option_row.h"
#include "snapkv/policy.h"

namespace snapkv {

template <typename Params>
using Field = OptionRow<Params>;
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

/// The table row for a member that is a bool, an integer, a double or an enumeration.
template <typename Params, typename T>
Field<Params> field(T Params::*member, const OptionText& text) {
  Field<Params> row = [&] {
    if constexpr (std::is_enum_v<T>) {
      return word_option(member, text, {words(T()).begin(), words(T()).end()});
    } else {
      return option(member, text);
    }
  }();
  row.info.option = "kv_" + row.info.name;
  return row;
}

/// Joins tables, whose structs `Params` derives from, into one.
template <typename Params, typename... Bases>
Fields<Params> join(const Fields<Bases>&... tables) {
  Fields<Params> all;
  const auto append = [&all](const auto& table) {
    for (const auto& f : table) all.push_back({f.info, f.set, f.get});
  };
  (append(tables), ...);
  return all;
}

/// The name in messages of the parameter that the tables call `name`.
OptionName param_name(std::string_view name);

/// The checked values that the configuration gives for the policy's parameters, in the table's
/// order, without those it does not give. Throws Error{kUsage} for a parameter that the policy does
/// not have.
std::vector<std::pair<size_t, PolicyValue>> given_values(const PolicyInfo& info,
                                                         const PolicyConfig& config);

/// Reads a configuration into the typed struct.
template <typename Params>
Params read_params(const PolicyInfo& info, const Fields<Params>& fields,
                   const PolicyConfig& config) {
  Params params;
  for (const auto& [i, value] : given_values(info, config)) fields[i].set(params, value);
  return params;
}

}  // namespace snapkv
