// SPDX-License-Identifier: MIT
#include "snapkv/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/option_row.h"
#include "base/parse_number.h"

namespace snapkv {
namespace {

using Type = OptionInfo::Type;

bool is_whole(const OptionInfo& info) {
  return info.type == Type::integer || info.type == Type::bytes;
}

/// The value in the option's type, if it has that type and is within the range.
std::optional<OptionValue> in_range(const OptionInfo& info, const OptionValue& value) {
  const auto within = [&](double v) { return v >= info.least && v <= info.most; };  // not a NaN
  const auto* whole = std::get_if<int64_t>(&value);
  const auto* text = std::get_if<std::string>(&value);
  switch (info.type) {
    case Type::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case Type::integer:
    case Type::bytes:
      if (whole != nullptr && *whole >= whole_limit(info.least) &&
          *whole <= whole_limit(info.most) && (!info.odd || *whole % 2 != 0)) {
        return value;
      }
      break;
    case Type::real: {
      const auto* real = std::get_if<double>(&value);
      if (whole != nullptr && within(static_cast<double>(*whole))) {
        return static_cast<double>(*whole);
      }
      if (real != nullptr && within(*real)) return value;
      break;
    }
    case Type::word:
      if (text != nullptr && std::count(info.words.begin(), info.words.end(), *text) > 0) {
        return value;
      }
      break;
    case Type::text:
    case Type::texts:
      if (text != nullptr) return value;
      break;
  }
  return std::nullopt;
}

/// Whether the option's upper limit is its own and not just that of its type.
bool has_own_limit(const OptionInfo& info) {
  return info.type == Type::real || info.most < std::numeric_limits<int32_t>::max();
}

/// "a whole number from 0 to 10", "a number, at least 0": what a message asks for.
std::string requirement(const OptionInfo& info) {
  const std::string range = range_text(info);
  if (info.type != Type::integer && info.type != Type::real) return range;
  return fmt::format("{}{}{}", info.type == Type::integer ? "a whole number" : "a number",
                     range.starts_with("from") || range.starts_with("of") ? " " : ", ", range);
}

/// "a", "a or b", "a, b or c"
std::string any_of(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

/// What a message says of a number that is too large, if the range does not say it.
std::string beyond_type(const OptionInfo& info, const OptionValue& value) {
  const auto* number = std::get_if<int64_t>(&value);
  if (info.type != Type::integer || has_own_limit(info) || number == nullptr) return "";
  if (static_cast<double>(*number) <= info.most) return "";
  return fmt::format(" and at most {}", whole_limit(info.most));
}

}  // namespace

std::string_view name(OptionInfo::Group group) {
  constexpr std::string_view kNames[] = {"model", "session", "sampler", "answer"};
  return kNames[static_cast<size_t>(group)];
}

std::string_view name(OptionInfo::Type type) {
  constexpr std::string_view kNames[] = {"boolean", "integer", "real", "bytes",
                                         "word",    "text",    "texts"};
  return kNames[static_cast<size_t>(type)];
}

OptionInfo make_info(const OptionText& text) {
  OptionInfo info;
  info.name = info.option = text.name;
  info.label = *text.label != '\0' ? text.label : text.name;
  info.least = text.least;
  info.most = text.most;
  info.odd = text.odd;
  info.always_named = text.always_named;
  info.help = text.help;
  info.paper = text.paper;
  return info;
}

std::string range_text(const OptionInfo& info) {
  switch (info.type) {
    case Type::boolean:
      return "true or false";
    case Type::word:
      return any_of(info.words);
    case Type::bytes:
      return fmt::format("a size from {} to {}, as in 256MiB or 8G",
                         size_text(whole_limit(info.least)), size_text(whole_limit(info.most)));
    case Type::text:
    case Type::texts:
      return "a text";
    case Type::integer:
    case Type::real:
      break;
  }
  if (info.least < -1e18 && info.type == Type::integer) return "of 64 bits";
  const std::string odd = info.odd ? "odd and " : "";
  if (!has_own_limit(info)) return odd + fmt::format("at least {}", info.least);
  return odd + fmt::format("from {} to {}", info.least, info.most);
}

std::string value_text(const OptionValue& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

OptionValue check_value(const OptionInfo& info, const OptionValue& value) {
  if (std::optional<OptionValue> checked = in_range(info, value)) return *checked;
  fail(ErrorCode::kUsage, "{} is {}; it must be {}{}", OptionName(info), value_text(value),
       requirement(info), beyond_type(info, value));
}

OptionValue parse_value(const OptionInfo& info, std::string_view text) {
  std::optional<OptionValue> value;
  if (info.type == Type::boolean) {
    if (text == "true" || text == "1") value = true;
    if (text == "false" || text == "0") value = false;
  } else if (is_whole(info)) {
    if (const auto n = info.type == Type::bytes ? parse_size(text) : parse_whole(text)) value = *n;
  } else if (info.type == Type::real) {
    if (const auto x = parse_real(text)) value = *x;
  }
  return check_value(info, value.value_or(std::string(text)));
}

}  // namespace snapkv
