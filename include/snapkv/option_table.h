// SPDX-License-Identifier: MIT
// Option tables: each option of a struct is one row, with its name, type, range, default and a line
// of help, and the member that it sets. Range checks, the command's options, the server's fields,
// the C API, records and documentation are made from the rows.
//
//   const auto& table = snapkv::sampler_option_table();  // options.h has the engine's tables
//   for (const snapkv::OptionInfo& info : table.infos()) std::cout << info.name << "\n";
//   table.set(config, "top_k", snapkv::OptionValue(int64_t{20}));
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "snapkv/variant.h"

namespace snapkv {

/// The value of an option: a bool, a whole number (bytes too), a real number, or a text.
using OptionValue = Variant<bool, int64_t, double, std::string>;

/// One option.
struct OptionInfo {
  enum class Group { model, session, sampler, answer };
  /// `bytes`: a whole number, written with an optional unit, "256MiB". `word`: one of `words`.
  /// `texts`: setting it adds a text.
  enum class Type { boolean, integer, real, bytes, word, text, texts };

  std::string name;    ///< "kernel_size", as the member of its struct
  std::string option;  ///< "kv_kernel_size": its name among all options
  std::string label;   ///< "kernel": in tables and summaries
  Group group = Group::session;
  Type type = Type::integer;
  OptionValue default_value;
  double least = 0, most = 0;      ///< for numbers: the range, both ends included
  bool odd = false;                ///< for whole numbers: even ones are rejected
  bool always_named = false;       ///< named by describe_params() even at its default
  std::vector<std::string> words;  ///< for words: those that are accepted
  std::string help;                ///< one line
  std::string paper;               ///< arXiv number; may be empty
};
/// "model", "session", "sampler", "answer"
std::string_view name(OptionInfo::Group group);
/// "boolean", "integer", "real", "bytes", "word", "text", "texts"
std::string_view name(OptionInfo::Type type);

/// "odd and from 1 to 65535", "from 0 to 1", "max or avg": the requirement on a value.
std::string range_text(const OptionInfo& info);
/// "15", "0.2", "avg", "true".
std::string value_text(const OptionValue& value);
/// Parses a value: "15", "0.2", "true", "256MiB". Throws Error{kUsage} naming the option, the text
/// and the range.
OptionValue parse_value(const OptionInfo& info, std::string_view text);
/// The value in the option's type; a whole number may stand for a real one. Throws Error{kUsage}:
/// "kernel_size is 4; it must be a whole number, odd and from 1 to 65535".
OptionValue check_value(const OptionInfo& info, const OptionValue& value);

/// A row of a table: the option, and how it is written to the struct and read from it.
template <typename Struct>
struct OptionRow {
  OptionInfo info;
  std::function<void(Struct&, const OptionValue&)> set;  ///< takes check_value()'s result
  std::function<OptionValue(const Struct&)> get;
};

template <typename Struct>
class OptionTable {
 public:
  /// The options' default values are those of `defaults`.
  explicit OptionTable(std::vector<OptionRow<Struct>> rows, const Struct& defaults = Struct{})
      : rows_(std::move(rows)) {
    for (OptionRow<Struct>& row : rows_) {
      row.info.default_value = row.get(defaults);
      infos_.push_back(row.info);
    }
  }

  /// In the order in which they are listed.
  const std::vector<OptionInfo>& infos() const { return infos_; }
  /// nullptr if there is no option of this name.
  const OptionInfo* find(std::string_view name) const {
    const size_t i = index_of(name);
    return i < rows_.size() ? &infos_[i] : nullptr;
  }
  /// Sets an option that the table has. Throws as check_value().
  void set(Struct& options, std::string_view name, const OptionValue& value) const {
    const OptionRow<Struct>& row = rows_.at(index_of(name));
    row.set(options, check_value(row.info, value));
  }
  /// The value of an option that the table has.
  OptionValue get(const Struct& options, std::string_view name) const {
    return rows_.at(index_of(name)).get(options);
  }
  /// Throws as check_value() for the first option whose value is out of range.
  void check(const Struct& options) const {
    for (const OptionRow<Struct>& row : rows_) check_value(row.info, row.get(options));
  }

 private:
  size_t index_of(std::string_view name) const {
    size_t i = 0;
    while (i < rows_.size() && rows_[i].info.name != name) ++i;
    return i;
  }

  std::vector<OptionRow<Struct>> rows_;
  std::vector<OptionInfo> infos_;
};

}  // namespace snapkv
