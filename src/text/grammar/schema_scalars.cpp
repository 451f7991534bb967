// SPDX-License-Identifier: MIT
// SchemaReader: its functions for strings and numbers.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/grammar/schema_numbers.h"
#include "text/grammar/schema_pattern.h"
#include "text/grammar/schema_reader.h"

namespace snapkv::grammar {
namespace {

constexpr const char* kFormats[] = {"date", "time", "date-time", "uuid"};

bool is_known_format(const std::string& format) {
  return std::find(std::begin(kFormats), std::end(kFormats), format) != std::end(kFormats);
}

}  // namespace

std::string SchemaReader::read_string(const Schema& schema, const std::string& place) {
  const std::optional<int64_t> least = count_of(schema, "minLength", place);
  const std::optional<int64_t> most = count_of(schema, "maxLength", place);
  if (least && most && *least > *most) {
    reject(place, fmt::format("minLength {} and maxLength {}: no string has both", *least, *most));
  }
  const auto format = schema.find("format");
  if (format != schema.end() && !format->is_string()) reject(place, "format must be a string");
  const bool has_format = format != schema.end() && is_known_format(*format);
  const bool has_pattern = schema.contains("pattern");
  if (has_pattern && has_format) {
    leave_out("format", place, "pattern and format together are not supported");
  }
  const std::string character = rules_.json("char");
  if (has_pattern) return read_pattern(schema, place, least, most);
  if (has_format) {
    if (least || most) {
      leave_out(least ? "minLength" : "maxLength", place,
                "format and minLength or maxLength together are not supported");
    }
    return fmt::format(R"("\"" {} "\"")", rules_.json(format->get<std::string>()));
  }
  if (!least && !most) return rules_.json("string");
  return fmt::format(R"("\"" {}{{{},{}}} "\"")", character, least.value_or(0),
                     most ? std::to_string(*most) : "");
}

std::string SchemaReader::read_pattern(const Schema& schema, const std::string& place,
                                       std::optional<int64_t> least, std::optional<int64_t> most) {
  if (!schema["pattern"].is_string()) reject(place, "pattern must be a string");
  const auto pattern = schema["pattern"].get<std::string>();
  try {
    if (least || most) {
      if (const auto both = pattern_with_lengths(pattern, {least.value_or(0), most}, at(place))) {
        return fmt::format(R"("\"" {} "\"")", *both);
      }
      leave_out(least ? "minLength" : "maxLength", place,
                "such a pattern and minLength or maxLength together are not supported");
    }
    bool left_out = false;
    const std::string text =
        pattern_to_gbnf(pattern, at(place), work_.may_leave_out() ? &left_out : nullptr);
    if (left_out) leave_out("pattern: look-around", place, "");
    return fmt::format(R"("\"" ({}) "\"")", text);
  } catch (const Error&) {  // other regular expressions than ECMA's have more
    if (!work_.may_leave_out()) throw;
    leave_out("pattern", place, "");
  }
  if (!least && !most) return rules_.json("string");
  return fmt::format(R"("\"" {}{{{},{}}} "\"")", rules_.json("char"), least.value_or(0),
                     most ? std::to_string(*most) : "");
}

std::string SchemaReader::read_number(const Schema& schema, bool whole, const std::string& place) {
  NumberRange range;
  bool bounded = false;
  const auto take = [&](const char* keyword, bool is_least, bool exclusive) {
    const auto value = schema.find(keyword);
    if (value == schema.end() || value->is_boolean()) return;  // draft 4 has true beside minimum
    if (!value->is_number()) {
      reject(place, fmt::format("{} must be a number, not {}", keyword, value->dump()));
    }
    Decimal bound = decimal_of(value->dump());
    if (!bound.fits) {
      const bool keeps_numbers = bound.negative == is_least;  // no number is beyond it
      if (!keeps_numbers) {
        leave_out(keyword, place,
                  fmt::format("{} {}: numbers of more than 18 digits are not supported", keyword,
                              value->dump()));
        return;
      }
      bound = {.negative = bound.negative, .whole = kMostBound};
    }
    bounded = true;
    narrow(range, bound, is_least, exclusive);
  };
  take("minimum", true, false);
  take("maximum", false, false);
  take("exclusiveMinimum", true, true);
  take("exclusiveMaximum", false, true);
  if (schema.value("exclusiveMinimum", Schema()) == true) range.above_least = true;
  if (schema.value("exclusiveMaximum", Schema()) == true) range.below_most = true;
  if (const auto factor = schema.find("multipleOf"); factor != schema.end()) {
    if (!factor->is_number() || factor->get<double>() <= 0) {
      reject(place, fmt::format("multipleOf must be a number above 0, not {}", factor->dump()));
    }
    const Decimal step = decimal_of(factor->dump());
    if (step == Decimal{.whole = 1}) {
      whole = true;
    } else if (const int n = digits_of_step(step); n > 0) {  // whole numbers are multiples of 0.01
      range.n_fraction = n;
      bounded = true;
    } else if (const std::string multiples = multiples_of(step); !multiples.empty() && !bounded) {
      return multiples;
    } else {
      leave_out("multipleOf", place,
                fmt::format("multipleOf {}{} is not supported", factor->dump(),
                            bounded ? " beside bounds" : ""));
    }
  }
  if (!bounded) return rules_.json(whole ? "integer" : "number");
  const std::string digits = whole ? integers_between(range) : numbers_between(range);
  if (digits.empty()) reject(place, "no number is between minimum and maximum");
  return digits;
}

}  // namespace snapkv::grammar
