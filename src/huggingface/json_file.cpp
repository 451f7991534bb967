// SPDX-License-Identifier: MIT
#include "huggingface/json_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "format/mmap_file.h"

namespace snapkv::huggingface {

namespace {

/// The text with {"__float__": "..."} in the place of Infinity, -Infinity and NaN outside texts.
std::string with_json_numbers(std::string_view text) {
  constexpr std::string_view kNumbers[] = {"-Infinity", "Infinity", "NaN"};
  std::string result;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto* number = in_text ? std::end(kNumbers)
                                 : std::find_if(std::begin(kNumbers), std::end(kNumbers),
                                                [rest = text.substr(i)](std::string_view name) {
                                                  return rest.starts_with(name);
                                                });
    if (number != std::end(kNumbers)) {
      result += R"({"__float__":")" + std::string(*number) + R"("})";
      i += number->size() - 1;
      continue;
    }
    result += text[i];
    if (in_text && text[i] == '\\' && i + 1 < text.size()) {
      result += text[++i];  // whatever it is, it does not end the text
    } else if (text[i] == '"') {
      in_text = !in_text;
    }
  }
  return result;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& label, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail(ErrorCode::kBadModel, "'{}' has {} bytes, expected at most {}", label, text.size(),
         limits.bytes);
  }
  const auto check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth < limits.depth) return true;
    fail(ErrorCode::kBadModel, "'{}': more than {} objects and arrays in one another", label,
         limits.depth);
  };
  std::string standard;
  if (limits.python_numbers && (text.find("Infinity") != std::string_view::npos ||
                                text.find("NaN") != std::string_view::npos)) {
    standard = with_json_numbers(text);
    text = standard;
  }
  Json value;
  try {
    value = Json::parse(text.begin(), text.end(), check_depth);
  } catch (const Json::exception& e) {
    fail(ErrorCode::kBadModel, "'{}' is not valid JSON: {}", label, printable(e.what()));
  }
  if (!value.is_object()) {
    fail(ErrorCode::kBadModel, "'{}' holds {}, expected an object", label, shown(value));
  }
  return value;
}

Json read_json(const std::string& path, const JsonLimits& limits) {
  std::error_code error;  // ignored: if the file cannot be read, MmapFile says why
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > limits.bytes) {
    fail(ErrorCode::kBadModel, "'{}' has {} bytes, expected at most {}", path, bytes, limits.bytes);
  }
  const MmapFile file(path, FileAccess::copied);
  return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path,
                    limits);
}

std::optional<Json> read_json_if_there(const std::string& path, const JsonLimits& limits) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  return read_json(path, limits);
}

const Json* JsonFields::find(std::string_view key) const {
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const Json& JsonFields::need(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) bad(key, "is missing");
  return *value;
}

void JsonFields::bad_type(std::string_view key, std::string_view expected) const {
  bad(key, "is {}, expected {}", shown(need(key)), expected);
}

int64_t JsonFields::integer(std::string_view key, int64_t low, int64_t high) const {
  const Json& value = need(key);
  if (!value.is_number_integer()) bad_type(key, "a whole number");
  const bool fits = !value.is_number_unsigned() || std::in_range<int64_t>(value.get<uint64_t>());
  if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high) {
    bad(key, "is {}, expected {} to {}", shown(value), low, high);
  }
  return value.get<int64_t>();
}

int64_t JsonFields::integer(std::string_view key, int64_t low, int64_t high,
                            int64_t otherwise) const {
  return has(key) ? integer(key, low, high) : otherwise;
}

double JsonFields::positive(std::string_view key) const {
  const Json& value = need(key);
  if (!value.is_number()) bad_type(key, "a number");
  constexpr double kLow = std::numeric_limits<float>::min();
  constexpr double kHigh = std::numeric_limits<float>::max();
  const double number = value.get<double>();
  if (!(number >= kLow && number <= kHigh)) {
    bad(key, "is {}, expected {:.3g} to {:.3g}", shown(value), kLow, kHigh);
  }
  return number;
}

double JsonFields::positive(std::string_view key, double otherwise) const {
  return has(key) ? positive(key) : otherwise;
}

void JsonFields::expect(std::string_view key, double expected) const {
  const double value = positive(key, expected);
  if (std::abs(value - expected) > 1e-6 * expected) {
    bad(key, "is {}, supported is {}", value, expected);
  }
}

const std::string& JsonFields::text(std::string_view key) const {
  const Json& value = need(key);
  if (!value.is_string()) bad_type(key, "a text");
  return value.get_ref<const std::string&>();
}

std::string JsonFields::text(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

bool JsonFields::flag(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const Json& value = need(key);
  if (!value.is_boolean()) bad_type(key, "true or false");
  return value.get<bool>();
}

std::optional<JsonFields> JsonFields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) bad_type(key, "an object");
  return JsonFields(*value, file_, prefix_ + printable(key) + ".");
}

std::string shown(const Json& value) {
  if (value.is_object() && !value.empty()) return "an object";
  if (value.is_array() && !value.empty()) return fmt::format("an array of {}", value.size());
  return printable(value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace));
}

}  // namespace snapkv::huggingface
