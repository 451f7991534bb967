// SPDX-License-Identifier: MIT
// A tokenizer.json as it was read: the large tables as vectors, everything else as JSON.
//
// The tables are most of the file, up to half a million entries; read as one JSON value they would
// take hundreds of megabytes. The file is not trusted: size, depth and number of values are
// bounded.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace snapkv {

struct TokenizerFile {
  std::string origin;   // "'path'", with which messages about the file begin
  nlohmann::json json;  // an object, without model.vocab and model.merges
  bool has_vocab = false;
  bool has_merges = false;
  std::vector<std::pair<std::string, int64_t>> vocab;        // {"text": id}, in the file's order
  std::vector<std::pair<std::string, double>> scored_vocab;  // [["text", score]], by id
  std::vector<std::pair<std::string, std::string>> merges;   // "a b" or ["a", "b"]
};

/// Throws Error{kBadModel} naming the path, the place in the file, what was expected and found.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& path);

/// A JSON value and the name of its place for messages: "'path': normalizer.normalizers[1]".
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string place)
      : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool is_null() const { return value_->is_null(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }
  bool is_string() const { return value_->is_string(); }
  bool is_zero() const { return value_->is_number() && value_->get<double>() == 0; }
  bool has(const char* key) const { return value_->is_object() && value_->contains(key); }
  /// A member; null if it is absent. Throws Error{kBadModel} if this is not an object.
  JsonField operator[](const char* key) const;
  std::vector<JsonField> elements() const;
  /// The members of an object with their names.
  std::vector<std::pair<std::string, JsonField>> members() const;

  // The value, or `otherwise` if it is absent or null. Throws Error{kBadModel} for another type.
  const std::string& string() const;
  std::string string(std::string_view otherwise) const;
  bool boolean(bool otherwise) const;
  int64_t integer() const;
  int64_t integer(int64_t otherwise) const;

  /// Throws Error{kBadModel}: "...: type 'X' is not supported; supported: ...".
  [[noreturn]] void fail_unsupported(std::string_view what, std::string_view supported) const;
  [[noreturn]] void fail_expected(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace snapkv
