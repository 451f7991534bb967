// SPDX-License-Identifier: MIT
// Schemas that say the same as two of them together: for allOf, and for what stands beside $ref,
// anyOf and oneOf. Called by SchemaReader.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace snapkv::grammar {

using Schema = nlohmann::ordered_json;

/// Whether a keyword says what is valid; others are for people and programs (title, default ...).
bool is_constraint(const std::string& keyword);
/// Fails for keywords that say what is valid and are not supported.
void check_keywords(const Schema& schema, const std::string& place);

/// What copying and comparing the parts of one schema may take: a few of them can refer to each
/// other so that they are looked at again and again.
class SchemaWork {
 public:
  /// Throws Error{kUsage} "PLACE: ..." when it is spent. Comparing two values takes 1.
  void spend(size_t n, const std::string& place);
  /// For a copy.
  void spend_copy(const Schema& schema, const std::string& place);

 private:
  size_t left_ = 20'000'000;  // about a third of a second
};

/// The schema without `keyword`, and without what is for people.
Schema constraints_beside(const Schema& schema, const std::string& keyword);

/// Both must hold. Throws Error{kUsage} "PLACE: ..." where that can't be said in one schema, or
/// nothing is left.
Schema merged(Schema a, const Schema& b, const std::string& place, SchemaWork& work);

/// The values of `type`, in its order; all types that the other keywords are about where there is
/// none; empty: any.
std::vector<std::string> types_of(const Schema& schema, const std::string& place);

}  // namespace snapkv::grammar
