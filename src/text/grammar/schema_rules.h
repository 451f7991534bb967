// SPDX-License-Identifier: MIT
// SchemaRules: the GBNF rules made from a schema, each with a unique name, and the rules that many
// schemas need: JSON's values and the formats of strings.
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
  /// `name`: the schema's name in messages.
  explicit SchemaRules(std::string name) : name_(std::move(name)) {}

  /// Reserves a free rule name that is like `wish`. Throws Error{kUsage} if the grammar would have
  /// more rules than the parser accepts.
  std::string reserve(const std::string& wish);
  void define(const std::string& name, std::string body);
  /// Reserves a name, defines the rule and returns the name.
  std::string add(const std::string& wish, std::string body);
  /// The name of one of JSON's rules ("object", "string", "char", "space" ...); adds the rule if it
  /// is not there yet.
  std::string json(std::string_view name);
  static bool has_json(std::string_view name);
  /// Counts text made for rules. Throws Error{kUsage} before the rules take too much memory, since
  /// alternatives may repeat the parts around them.
  void count_bytes(size_t n);

  /// All rules, the root first.
  std::string text() const;

 private:
  const std::string name_;
  std::vector<std::string> order_;
  std::map<std::string, std::string> bodies_;
  std::unordered_map<std::string, int> last_number_;  // of the rules with the same wish
  size_t n_bytes_ = 0;
};

/// A set as a GBNF class, with its brackets.
std::string gbnf_class(const CharSet& set);

}  // namespace snapkv::grammar
