// SPDX-License-Identifier: MIT
// JSON files of a Hugging Face folder: read within limits, and their fields with errors that name
// file, field, expected and actual. Used by the readers of config.json, tokenizer.json and others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "format/byte_reader.h"

namespace snapkv::huggingface {

using Json = nlohmann::json;

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 64;  // of arrays and objects in one another
};

/// Of files about tokens. The largest in use have 35 MB; lists of tokens are two levels deep,
/// patterns some more.
inline constexpr JsonLimits kTokenizerLimits{.bytes = size_t{256} << 20, .depth = 32};

/// The object that `text` holds. Throws Error{kBadModel} that begins with `label`, with the place
/// of the fault, when it is no JSON, no object, or beyond the limits.
Json parse_json(std::string_view text, const std::string& label, const JsonLimits& limits = {});
/// The same from a file; throws Error{kRuntime} when it can't be read.
Json read_json(const std::string& path, const JsonLimits& limits = {});
/// The same, or nothing where there is no such file.
std::optional<Json> read_json_if_there(const std::string& path, const JsonLimits& limits = {});

/// The fields of one object. Every method throws Error{kBadModel} when the field is of another type
/// or outside the range; a field that is null counts as missing.
class JsonFields {
 public:
  /// `object` and `file` must outlive this; `prefix` is put before keys in messages.
  JsonFields(const Json& object, const std::string& file, std::string prefix = "")
      : object_(object), file_(file), prefix_(std::move(prefix)) {}

  const std::string& file() const { return file_; }
  const Json& json() const { return object_; }
  /// nullptr when the field is missing.
  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Without a default the field must be there.
  int64_t integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t integer(std::string_view key, int64_t low, int64_t high, int64_t otherwise) const;
  /// A number within the range of positive f32 values, the subnormal ones left out: models compute
  /// with it in f32.
  double positive(std::string_view key) const;
  double positive(std::string_view key, double otherwise) const;
  const std::string& text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  /// nullopt when the field is missing.
  std::optional<JsonFields> object(std::string_view key) const;

  /// "'DIR/config.json': rope_scaling.factor "
  std::string at(std::string_view key) const {
    return "'" + file_ + "': " + prefix_ + printable(key) + " ";
  }
  template <typename... Args>
  [[noreturn]] void bad(std::string_view key, fmt::format_string<Args...> format,
                        Args&&... args) const {
    fail(ErrorCode::kBadModel, "{}{}", at(key), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const Json& need(std::string_view key) const;
  [[noreturn]] void bad_type(std::string_view key, std::string_view expected) const;

  const Json& object_;
  const std::string& file_;
  std::string prefix_;
};

/// A value as a message shows it: JSON, cut after 80 bytes.
std::string shown(const Json& value);

}  // namespace snapkv::huggingface
