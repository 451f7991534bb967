// SPDX-License-Identifier: MIT
#include "text/jinja/attribute_path.h"

#include <algorithm>

#include "text/jinja/text_functions.h"

namespace snapkv::jinja {
namespace {

Value path_part(std::string_view name) {
  const bool is_number =
      !name.empty() && name.size() < 10 &&
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return Value::text(std::string(name));
  int64_t value = 0;
  for (const char c : name) value = value * 10 + (c - '0');
  return Value(value);
}

}  // namespace

AttributePath::AttributePath(const std::optional<Value>& attribute, std::optional<Value> otherwise)
    : otherwise_(std::move(otherwise)) {
  if (otherwise_ && otherwise_->is_none()) otherwise_.reset();
  if (!attribute || attribute->is_none()) return;
  if (!attribute->is_text()) {
    parts_.push_back(*attribute);
    return;
  }
  std::string_view rest = attribute->text().bytes();
  for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    parts_.push_back(path_part(rest.substr(0, dot)));
    rest.remove_prefix(dot + 1);
  }
  parts_.push_back(path_part(rest));
}

Value AttributePath::get(Interpreter& in, Value item) const {
  for (const Value& part : parts_) {
    in.budget().charge(1);
    item = in.item(item, part);
    if (otherwise_ && item.is_undefined()) item = *otherwise_;
  }
  return item;
}

Value sort_key(Interpreter& in, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is_text()) return value;
  return Value(lower(in.budget(), value.text()));
}

}  // namespace snapkv::jinja
