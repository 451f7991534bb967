// SPDX-License-Identifier: MIT
// SchemaRules: the GBNF rules that a schema becomes, each name once, and those that many schemas
// need: JSON's values and formats of strings. Filled by SchemaReader.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

class SchemaRules {
 public:
  /// A name for a rule that is like `wish` and free.
  std::string reserve(const std::string& wish);
  void define(const std::string& name, std::string body);
  /// Reserves and defines, and returns the name.
  std::string add(const std::string& wish, std::string body);
  /// The name of one of JSON's rules ("object", "string", "char", "space" ...), which is there
  /// from now on.
  std::string json(std::string_view name);
  static bool has_json(std::string_view name);

  /// All rules, the root first.
  std::string text() const;

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string> bodies_;
};

/// A set as a class of GBNF, with its brackets.
std::string gbnf_class(const CharSet& set);

}  // namespace snapkv::grammar
