// SPDX-License-Identifier: MIT
// SchemaRules: the GBNF rules that a schema becomes, each name once, and those that many schemas
// need: JSON's values and formats of strings. Filled by SchemaReader.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar/char_set.h"

namespace snapkv::grammar {

class SchemaRules {
 public:
  /// `name`: what messages call the schema.
  explicit SchemaRules(std::string name) : name_(std::move(name)) {}

  /// A name for a rule that is like `wish` and free. Throws Error{kUsage} where a grammar would
  /// have more rules than the parser takes.
  std::string reserve(const std::string& wish);
  void define(const std::string& name, std::string body);
  /// Reserves and defines, and returns the name.
  std::string add(const std::string& wish, std::string body);
  /// The name of one of JSON's rules ("object", "string", "char", "space" ...), which is there
  /// from now on.
  std::string json(std::string_view name);
  static bool has_json(std::string_view name);
  /// Counts a text that is made for the rules. Throws Error{kUsage} before all of them take much
  /// memory: alternatives may repeat what stands beside them.
  void count_bytes(size_t n);

  /// All rules, the root first.
  std::string text() const;

 private:
  const std::string name_;
  std::vector<std::string> order_;
  std::map<std::string, std::string> bodies_;
  std::unordered_map<std::string, int> last_number_;  // of the rules with one wish
  size_t n_bytes_ = 0;
};

/// A set as a class of GBNF, with its brackets.
std::string gbnf_class(const CharSet& set);

}  // namespace snapkv::grammar
