// SPDX-License-Identifier: MIT
// Merging two schemas into one that demands both: for allOf, and for keywords next to $ref, anyOf
// and oneOf.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "snapkv/grammar.h"

namespace snapkv::grammar {

using Schema = nlohmann::ordered_json;

/// Whether a keyword restricts the valid values; the others only describe (title, default ...).
bool is_constraint(const std::string& keyword);

/// What is done for one schema: what copying and comparing its parts may take, as a few of them can
/// refer to each other so that they are looked at again and again; and what is left out.
class SchemaWork {
 public:
  /// `relaxation`: null where nothing may be left out.
  SchemaWork(std::string name, SchemaRelaxation* relaxation)
      : name_(std::move(name)), relaxation_(relaxation) {}

  bool may_leave_out() const { return relaxation_ != nullptr; }
  /// A keyword is not obeyed. Throws Error{kUsage} "PLACE: MESSAGE" where it has to be. `place`
  /// begins with the schema's name.
  void leave_out(const std::string& keyword, const std::string& place, const std::string& message);
  /// Whether so many repetitions may still be written out.
  bool take_repetitions(int64_t n);

  /// Throws Error{kUsage} "PLACE: ..." when the work is used up. Comparing two values takes 1.
  void spend(size_t n, const std::string& place);
  /// Spends the work of a copy of `schema`.
  void spend_copy(const Schema& schema, const std::string& place);

 private:
  const std::string name_;
  SchemaRelaxation* const relaxation_;
  size_t left_ = 20'000'000;  // about a third of a second
};

/// Leaves out keywords that say what is valid and that no grammar is made of.
void check_keywords(const Schema& schema, const std::string& place, SchemaWork& work);

/// The schema without `keyword` and without the keywords that only describe.
Schema constraints_beside(const Schema& schema, const std::string& keyword);

/// A schema that demands both. Throws Error{kUsage} "PLACE: ..." if one schema cannot express that
/// or no value would be left.
Schema merged(Schema a, const Schema& b, const std::string& place, SchemaWork& work);

/// The values of `type`, in its order. Without `type`, the types that the other keywords are about;
/// empty: any type.
std::vector<std::string> types_of(const Schema& schema, const std::string& place);

}  // namespace snapkv::grammar
