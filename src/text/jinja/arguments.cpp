// SPDX-License-Identifier: MIT
#include "text/jinja/arguments.h"

namespace snapkv::jinja {
namespace {

[[noreturn]] void fail_type(std::string_view callee, std::string_view name,
                            std::string_view expected, const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  fail(ErrorCode::kUsage, "{}: '{}' must be {}, not {}", callee, name, expected, value.type_name());
}

}  // namespace

void bind_none(std::string_view callee, const Arguments& args) {
  if (args.positional.empty() && args.keyword.empty()) return;
  fail(ErrorCode::kUsage, "{} takes no arguments", callee);
}

int64_t integer_argument(std::string_view callee, std::string_view name,
                         const std::optional<Value>& value, int64_t otherwise) {
  if (!value) return otherwise;
  if (!value->is_integer()) fail_type(callee, name, "an integer", *value);
  return value->integer();
}

TextPtr text_argument(std::string_view callee, std::string_view name, const Value& value) {
  if (!value.is_text()) fail_type(callee, name, "a str", value);
  return value.text_ptr();
}

TextPtr optional_text(std::string_view callee, std::string_view name,
                      const std::optional<Value>& value) {
  if (!value || value->is_none()) return nullptr;
  return text_argument(callee, name, *value);
}

bool flag_argument(const std::optional<Value>& value) { return value && truth(*value); }

}  // namespace snapkv::jinja
