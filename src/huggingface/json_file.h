// SPDX-License-Identifier: MIT
// JSON files of a Hugging Face folder, read within limits. Errors about their fields name the file,
// the field, and the expected and actual values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "format/byte_reader.h"

namespace snapkv::huggingface {

using Json = nlohmann::json;

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 64;  // of nested arrays and objects
  /// Whether Infinity, -Infinity and NaN may be numbers, as Python's json writes them. They become
  /// {"__float__": "Infinity"}, as newer versions of transformers write them.
  bool python_numbers = false;
};

/// For files about tokens. The largest in use have 35 MB; lists of tokens are nested two levels
/// deep, patterns a few more.
inline constexpr JsonLimits kTokenizerLimits{.bytes = size_t{256} << 20, .depth = 32};

/// The object in `text`. Throws Error{kBadModel}, with a message that begins with `label` and says
/// where the fault is, if it is not JSON, not an object, or beyond the limits.
Json parse_json(std::string_view text, const std::string& label, const JsonLimits& limits = {});
/// The same for a file; throws Error{kRuntime} if it cannot be read.
Json read_json(const std::string& path, const JsonLimits& limits = {});
/// The same, or nullopt if there is no such file.
std::optional<Json> read_json_if_there(const std::string& path, const JsonLimits& limits = {});

/// The fields of one object. Every method throws Error{kBadModel} if the field has another type or
/// is out of range. A field that is null counts as missing.
class JsonFields {
 public:
  /// `object` and `file` must outlive this; messages put `prefix` before keys.
  JsonFields(const Json& object, const std::string& file, std::string prefix = "")
      : object_(object), file_(file), prefix_(std::move(prefix)) {}

  const std::string& file() const { return file_; }
  const Json& json() const { return object_; }
  /// Returns nullptr if the field is missing.
  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Without a default, the field must exist.
  int64_t integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t integer(std::string_view key, int64_t low, int64_t high, int64_t otherwise) const;
  /// A number in the range of positive, normal f32 values, because models compute with it in f32.
  double positive(std::string_view key) const;
  double positive(std::string_view key, double otherwise) const;
  /// Fails if the field is there and has another value, which GGUF files cannot express.
  void expect(std::string_view key, double expected) const;
  const std::string& text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  /// Returns nullopt if the field is missing.
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

/// A value as messages show it: as JSON, cut after 80 bytes.
std::string shown(const Json& value);

}  // namespace snapkv::huggingface
