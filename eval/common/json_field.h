// SPDX-License-Identifier: MIT
// JsonField: a value of a JSON file that was written by another run, version or hand. Reading it as
// the wrong type is an Error that names file, line and field, never a JSON library's exception.
// Used by the tables that are made of records.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace snapkv::eval {

/// Levels of arrays and objects that a text may have.
inline constexpr int kMostJsonLevels = 64;

/// Whether a text that may be JSON has more levels than that: libraries walk nested values by
/// recursion.
bool nests_too_deep(std::string_view text);

/// The JSON text, or a value for which is_discarded() is true when it is none or nests too deep.
nlohmann::ordered_json parse_json(std::string_view text);

class JsonField {
 public:
  using Json = nlohmann::ordered_json;

  /// `place` names file and line for messages; `json` must outlive this.
  JsonField(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  // All throw Error{kUsage} naming place and field when the value is missing or another one.
  /// A member of an object.
  JsonField at(std::string_view name) const;
  /// An element of an array.
  JsonField at(int64_t index) const;
  /// Elements of an array.
  int64_t size() const;
  /// A number within [low, high]. Without limits of its own it is not so large that sums of such
  /// numbers or their products with sizes would be infinite.
  double number(double low = -kMostNumber, double high = kMostNumber) const;
  /// A whole number within [low, high].
  int64_t integer(int64_t low = INT64_MIN, int64_t high = INT64_MAX) const;
  bool boolean() const;
  const std::string& text() const;

  /// Bytes, seconds or anything else that is counted or measured.
  double amount() const { return number(0); }
  bool is_null() const { return json_->is_null(); }
  const Json& json() const { return *json_; }

 private:
  static constexpr double kMostNumber = 1e100;

  [[noreturn]] void fail_type(const std::string& expected) const;

  const Json* json_;
  std::string place_;  // "out.jsonl:12"
  std::string path_;   // "layers[2].hit"; empty: the whole document
};

}  // namespace snapkv::eval
