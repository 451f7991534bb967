// SPDX-License-Identifier: MIT
// SchemaReader: its functions for strings and numbers.
#include <cmath>

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
  const auto pattern = schema.find("pattern");
  const auto format = schema.find("format");
  if (format != schema.end() && !format->is_string()) reject(place, "format must be a string");
  const bool has_format = format != schema.end() && is_known_format(*format);
  if ((pattern != schema.end()) + has_format + (least || most) > 1) {
    reject(place, "pattern, format and minLength or maxLength together are not supported");
  }
  const std::string character = rules_.json("char");
  if (pattern != schema.end()) {
    if (!pattern->is_string()) reject(place, "pattern must be a string");
    return fmt::format(R"("\"" ({}) "\"")",
                       pattern_to_gbnf(pattern->get<std::string>(), at(place)));
  }
  if (has_format) {
    return fmt::format(R"("\"" {} "\"")", rules_.json(format->get<std::string>()));
  }
  if (!least && !most) return rules_.json("string");
  return fmt::format(R"("\"" {}{{{},{}}} "\"")", character, least.value_or(0),
                     most ? std::to_string(*most) : "");
}

std::string SchemaReader::read_number(const Schema& schema, bool whole, const std::string& place) {
  NumberRange range;
  bool bounded = false;
  const auto take = [&](const char* keyword, bool is_least, bool exclusive) {
    const auto value = schema.find(keyword);
    if (value == schema.end()) return;
    if (!value->is_number()) {
      reject(place, fmt::format("{} must be a number, not {}", keyword, value->dump()));
    }
    bounded = true;
    const double bound = value->get<double>();
    if (std::abs(bound) > static_cast<double>(kMostBound)) {
      reject(place, fmt::format("{} {}: numbers of more than 18 digits are not supported", keyword,
                                value->dump()));
    }
    const bool is_whole = bound == std::floor(bound);
    if (!whole && !is_whole) {
      reject(place, fmt::format("{} {}: bounds of type number must be whole numbers here", keyword,
                                value->dump()));
    }
    int64_t n = value->is_number_integer() ? value->get<int64_t>()
                                           : static_cast<int64_t>(is_least ? std::ceil(bound)  //
                                                                           : std::floor(bound));
    const bool above = exclusive && is_whole;
    if (whole && above) n += is_least ? 1 : -1;
    std::optional<int64_t>& known = is_least ? range.least : range.most;
    bool& is_open = is_least ? range.above_least : range.below_most;
    if (!known || (is_least ? n > *known : n < *known)) {
      known = n;
      is_open = above && !whole;
    } else if (n == *known) {
      is_open = is_open || (above && !whole);
    }
  };
  take("minimum", true, false);
  take("exclusiveMinimum", true, true);
  take("maximum", false, false);
  take("exclusiveMaximum", false, true);
  if (!bounded) return rules_.json(whole ? "integer" : "number");
  const std::string digits = whole ? integers_between(range) : numbers_between(range);
  if (digits.empty()) reject(place, "no number is between minimum and maximum");
  return digits;
}

}  // namespace snapkv::grammar
