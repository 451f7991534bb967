// SPDX-License-Identifier: MIT
// Fields: reads the members of a JSON object from a client, with their types and ranges. A value of
// another type or out of range is an ApiError (400) that names the field, the expected and the
// actual value. null counts as absent; unknown members are ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/json.h"
#include "snapkv/option_table.h"

namespace snapkv::server {

class Fields {
 public:
  /// `object` must outlive this. `path`: the prefix of names in messages, "kv." or "messages[3].";
  /// empty: the body itself. Throws if `object` is not an object.
  explicit Fields(const Json& object, std::string path = "");

  /// Returns nullptr if the member is absent or null.
  const Json* find(const char* name) const;
  bool has(const char* name) const { return find(name) != nullptr; }
  /// Throws if the member is absent.
  const Json& need(const char* name) const;

  std::optional<bool> boolean(const char* name) const;
  std::optional<int64_t> whole(const char* name, int64_t least, int64_t most) const;
  std::optional<double> number(const char* name, double least, double most) const;
  std::optional<std::string> text(const char* name) const;
  /// The value of an option of the engine, in its type and range (OptionInfo::name).
  std::optional<OptionValue> option(const OptionInfo& info) const;
  std::string needed_text(const char* name) const;
  const Json* object(const char* name) const;
  const Json* array(const char* name) const;
  /// Reads the members of an object; none if it is absent.
  Fields inside(const char* name) const;

  /// The members that nobody has asked for so far; of the body only.
  std::vector<std::string> unread() const;

  /// The field's name with its path.
  std::string name(const char* name) const { return path_ + name; }
  const Json& json() const { return object_; }

  /// Throws "'kv.budget' must be EXPECTED, not ACTUAL".
  [[noreturn]] void refuse(const char* name, const std::string& expected, const Json& actual) const;
  /// Throws "'NAME': REASON".
  [[noreturn]] void refuse(const char* name, const std::string& reason) const;

 private:
  const Json& object_;
  std::string path_;
  mutable std::set<std::string, std::less<>> asked_;  // of the body
};

/// Returns a value for an error message, shortened if it is long.
std::string short_text(const Json& value);

}  // namespace snapkv::server
