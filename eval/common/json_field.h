// SPDX-License-Identifier: MIT
// JsonField: a value in a JSON file that another run, version or person wrote. If it has the wrong
// type, reading it is an Error that names file, line and field, never an exception of the JSON
// library.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace snapkv::eval {

/// The most levels of nested arrays and objects in a text.
inline constexpr int kMostJsonLevels = 64;

/// Whether a text that may be JSON has more levels than that; libraries walk nested values by
/// recursion.
bool nests_too_deep(std::string_view text);

/// The JSON text; a value with is_discarded() if it is not JSON or nested too deep.
nlohmann::ordered_json parse_json(std::string_view text);

class JsonField {
 public:
  using Json = nlohmann::ordered_json;

  /// `place` names the file and line in messages; `json` must outlive this.
  JsonField(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  // All throw Error{kUsage} naming place and field if the value is missing or not as described.
  /// A member of an object.
  JsonField at(std::string_view name) const;
  /// An element of an array.
  JsonField at(int64_t index) const;
  /// The number of elements of an array.
  int64_t size() const;
  /// A number in [low, high]. The default limits exclude numbers so large that sums of them, or
  /// products with sizes, would be infinite.
  double number(double low = -kMostNumber, double high = kMostNumber) const;
  /// A whole number in [low, high].
  int64_t integer(int64_t low = INT64_MIN, int64_t high = INT64_MAX) const;
  bool boolean() const;
  const std::string& text() const;

  /// A number of bytes, seconds or anything else that is counted or measured.
  double amount() const { return number(0); }
  bool is_null() const;
  const Json& json() const { return *json_; }

 private:
  static constexpr double kMostNumber = 1e100;

  [[noreturn]] void fail_type(const std::string& expected) const;

  const Json* json_;
  std::string place_;  // "out.jsonl:12"
  std::string path_;   // "layers[2].hit"; empty for the whole document
};

}  // namespace snapkv::eval
