// SPDX-License-Identifier: MIT
// Merging two schemas into one that demands both: for allOf, and for keywords next to $ref, anyOf
// and oneOf.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace snapkv::grammar {

using Schema = nlohmann::ordered_json;

/// Whether a keyword restricts the valid values; the others only describe (title, default ...).
bool is_constraint(const std::string& keyword);
/// Fails for keywords that restrict the valid values but are not supported.
void check_keywords(const Schema& schema, const std::string& place);

/// The work allowed for copying and comparing parts of one schema: a few parts that refer to each
/// other can make the reader visit them again and again.
class SchemaWork {
 public:
  /// Throws Error{kUsage} "PLACE: ..." when the work is used up. Comparing two values takes 1.
  void spend(size_t n, const std::string& place);
  /// Spends the work of a copy of `schema`.
  void spend_copy(const Schema& schema, const std::string& place);

 private:
  size_t left_ = 20'000'000;  // about a third of a second
};

/// The schema without `keyword` and without the keywords that only describe.
Schema constraints_beside(const Schema& schema, const std::string& keyword);

/// A schema that demands both. Throws Error{kUsage} "PLACE: ..." if one schema cannot express that
/// or no value would be left.
Schema merged(Schema a, const Schema& b, const std::string& place, SchemaWork& work);

/// The values of `type`, in its order. Without `type`, the types that the other keywords are about;
/// empty: any type.
std::vector<std::string> types_of(const Schema& schema, const std::string& place);

}  // namespace snapkv::grammar
