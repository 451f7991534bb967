// SPDX-License-Identifier: MIT
// SchemaReader: writes the rules for a JSON schema. Its functions are in json_schema.cpp (for all
// types), schema_objects.cpp (objects and arrays) and schema_scalars.cpp (strings and numbers).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/grammar/schema_merge.h"
#include "text/grammar/schema_rules.h"

namespace snapkv::grammar {

class SchemaReader {
 public:
  SchemaReader(const Schema& document, std::string name, SchemaRelaxation* relaxation)
      : document_(document), name_(std::move(name)), rules_(name_), work_(name_, relaxation) {}
  std::string run();

 private:
  /// An expression for the values of a schema. `place` is the schema's path in the document, `wish`
  /// the preferred name of its rule.
  std::string read(const Schema& schema, const std::string& place, const std::string& wish);
  std::string read_reference(const Schema& schema, const std::string& place);
  std::string read_alternatives(const Schema& schema, const std::string& keyword,
                                const std::string& place, const std::string& wish);
  std::string read_values(const Schema& schema, const Schema& values, const std::string& place);
  std::string read_type(const Schema& schema, const std::string& type, const std::string& place,
                        const std::string& wish);
  std::string read_object(const Schema& schema, const std::string& place, const std::string& wish);
  using Member = std::pair<std::string, bool>;  // a rule, and whether the member is required
  /// Adds the rule of an object with these members in their order, followed by any number of
  /// `more`; returns its name.
  std::string join_members(const std::vector<Member>& members, const std::string& more,
                           const std::string& wish);
  /// An object without named members: what its keys and values are.
  std::string read_map(const Schema& schema, const std::string& place, const std::string& wish);
  /// Its members, one after the other, by what patternProperties, propertyNames and
  /// additionalProperties say; empty: none is possible.
  std::string map_member(const Schema& schema, const std::string& place, const std::string& wish);
  /// What is said of the number and names of members, where they have names of their own.
  void check_members(const Schema& schema, const std::vector<Member>& members, bool has_more,
                     const std::string& place);
  std::string read_more_members(const Schema& schema, const std::vector<std::string>& names,
                                const std::string& place, const std::string& wish);
  /// Adds rules for a key that is none of `names`; returns the name of the key's rule.
  std::string other_keys(const std::vector<std::string>& names, const std::string& place,
                         const std::string& wish);
  std::string read_array(const Schema& schema, const std::string& place, const std::string& wish);
  std::string read_string(const Schema& schema, const std::string& place);
  std::string read_pattern(const Schema& schema, const std::string& place,
                           std::optional<int64_t> least, std::optional<int64_t> most);
  std::string read_number(const Schema& schema, bool whole, const std::string& place);

  /// The schema with the parts of allOf merged in, and the target of a $ref next to other keywords.
  Schema flattened(const Schema& schema, const std::string& place, int nesting = 0);
  const Schema& resolve(const std::string& reference, const std::string& place);
  /// A keyword's value, which must be 0 or more; no value if the schema does not have the keyword.
  std::optional<int64_t> count_of(const Schema& schema, const char* keyword,
                                  const std::string& place);
  [[noreturn]] void reject(const std::string& place, const std::string& what) const;
  /// Throws as reject(), unless it may be left out.
  void leave_out(const char* keyword, const std::string& place, const std::string& what) {
    work_.leave_out(keyword, at(place), what);
  }
  std::string at(const std::string& place) const { return name_ + ": " + place; }

  const Schema& document_;
  const std::string name_;
  SchemaRules rules_;
  SchemaWork work_;
  std::map<std::string, std::string> references_;  // the rule for each reference
  int n_read_ = 0;
  int nesting_ = 0;
  size_t n_name_characters_ = 0;  // in the names that additional keys must differ from
};

/// `expression`, repeated `least` to `most` times (no value: unlimited) and separated by commas.
std::string repeated_items(const std::string& expression, int64_t least,
                           std::optional<int64_t> most);
/// A name or reference for messages; only its beginning if it is long.
std::string shortened(const std::string& name);

}  // namespace snapkv::grammar
