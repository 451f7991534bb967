// SPDX-License-Identifier: MIT
// Makes the rows of option tables from members and a few words about each:
//
//   option(&SamplerConfig::top_p, {.name = "top_p", .help = "...", .least = 0, .most = 1})
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "snapkv/limits.h"
#include "snapkv/option_table.h"

namespace snapkv {

/// What a table says of an option; type and default come from its member. An open range ends at the
/// limits of the member's type.
struct OptionText {
  const char* name = "";
  const char* help = "";
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool odd = false;
  bool always_named = false;
  const char* label = "";  // for people, if not the name
  const char* paper = "";
};

/// The option without its type.
OptionInfo make_info(const OptionText& text);

/// The row for an enumeration, whose values count from 0 in the order of `words`.
template <typename Struct, typename T>
OptionRow<Struct> word_option(T Struct::*member, const OptionText& text,
                              std::vector<std::string> words) {
  OptionRow<Struct> row;
  row.info = make_info(text);
  row.info.type = OptionInfo::Type::word;
  row.info.words = std::move(words);
  row.set = [member, known = row.info.words](Struct& s, const OptionValue& v) {
    const auto word = std::find(known.begin(), known.end(), std::get<std::string>(v));
    s.*member = static_cast<T>(word - known.begin());
  };
  row.get = [member, known = row.info.words](const Struct& s) {
    const auto i = static_cast<int64_t>(s.*member);  // any number, if a foreign caller stored it
    return OptionValue(i >= 0 && i < std::ssize(known) ? known[i] : std::to_string(i));
  };
  return row;
}

/// The row for a member that is a bool, a whole number, a double or a text.
template <typename Struct, typename T>
OptionRow<Struct> option(T Struct::*member, const OptionText& text) {
  OptionRow<Struct> row;
  row.info = make_info(text);
  if constexpr (std::is_same_v<T, bool>) {
    row.info.type = OptionInfo::Type::boolean;
    row.set = [member](Struct& s, const OptionValue& v) { s.*member = std::get<bool>(v); };
    row.get = [member](const Struct& s) { return OptionValue(s.*member); };
  } else if constexpr (std::is_integral_v<T>) {
    row.info.type = OptionInfo::Type::integer;
    // an OptionValue holds int64: a uint64 keeps its bits
    using Range = std::numeric_limits<std::conditional_t<sizeof(T) == 8, int64_t, T>>;
    row.info.least = std::max(text.least, static_cast<double>(Range::lowest()));
    row.info.most = std::min(text.most, static_cast<double>(Range::max()));
    row.set = [member](Struct& s, const OptionValue& v) {
      s.*member = static_cast<T>(std::get<int64_t>(v));
    };
    row.get = [member](const Struct& s) { return OptionValue(static_cast<int64_t>(s.*member)); };
  } else if constexpr (std::is_same_v<T, double>) {
    row.info.type = OptionInfo::Type::real;
    row.set = [member](Struct& s, const OptionValue& v) { s.*member = std::get<double>(v); };
    row.get = [member](const Struct& s) { return OptionValue(s.*member); };
  } else {
    static_assert(std::is_same_v<T, std::string>, "enumerations have words: word_option()");
    row.info.type = OptionInfo::Type::text;
    row.set = [member](Struct& s, const OptionValue& v) { s.*member = std::get<std::string>(v); };
    row.get = [member](const Struct& s) { return OptionValue(s.*member); };
  }
  return row;
}

/// The row for a number of bytes.
template <typename Struct>
OptionRow<Struct> bytes_option(size_t Struct::*member, OptionText text) {
  text.least = std::max(text.least, 0.0);
  text.most = std::min(text.most, static_cast<double>(kMostBytes));
  OptionRow<Struct> row = option(member, text);
  row.info.type = OptionInfo::Type::bytes;
  return row;
}

}  // namespace snapkv
