// SPDX-License-Identifier: MIT
// Filters that choose: a default value, items that pass a test, the results of another filter.
#include <algorithm>

#include "text/jinja/arguments.h"
#include "text/jinja/attribute_path.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/tests.h"

namespace snapkv::jinja {
namespace {

/// The items that map and select read; none if the value is false in Python's sense.
std::vector<Value> items_if_true(Interpreter& in, const Value& value) {
  return truth(value) ? items_of(in, value) : std::vector<Value>();
}

Value default_value(Interpreter&, const Value& value, Arguments& args) {
  const auto [otherwise, boolean] = bind("default", {"default_value", "boolean"}, 0, args);
  const bool applies = value.is_undefined() || (flag_argument(boolean) && !truth(value));
  return applies ? otherwise.value_or(Value::text("")) : value;
}

/// Removes the first positional argument and returns it as a name.
std::string take_name(std::string_view callee, Arguments& args) {
  if (args.positional.empty()) {
    fail(ErrorCode::kUsage, "{} needs the name of an attribute, filter or test", callee);
  }
  const TextPtr name = text_argument(callee, "name", args.positional.front());
  args.positional.erase(args.positional.begin());
  return name->bytes();
}

Value map(Interpreter& in, const Value& value, Arguments& args) {
  std::vector<Value> mapped;
  if (args.positional.empty() && !args.keyword.empty()) {
    const std::optional<Value> attribute = args.take("attribute");
    const std::optional<Value> otherwise = args.take("default");
    if (!attribute) fail(ErrorCode::kUsage, "map needs a filter or an attribute");
    bind_none("map with an attribute and a default", args);
    const AttributePath path(attribute, otherwise);
    for (Value& item : items_if_true(in, value)) mapped.push_back(path.get(in, std::move(item)));
  } else {
    const std::string name = take_name("map", args);
    const FilterCode filter = find_filter(name);
    const Nesting nesting(in.budget());
    for (const Value& item : items_if_true(in, value)) {
      in.budget().charge(1 + std::ssize(args.positional) + std::ssize(args.keyword));
      if (filter == nullptr) fail(ErrorCode::kUsage, "map: {}", unknown_filter(name));
      Arguments copy = args;
      mapped.push_back(filter(in, item, copy));
    }
  }
  return Value(in.make<Generator>(std::move(mapped)));
}

template <bool wanted, bool by_attribute>
Value select(Interpreter& in, const Value& value, Arguments& args) {
  constexpr std::string_view kName =
      by_attribute ? (wanted ? "selectattr" : "rejectattr") : (wanted ? "select" : "reject");
  std::optional<Value> attribute;
  if (by_attribute) {
    if (args.positional.empty()) {
      fail(ErrorCode::kUsage, "{} needs the name of an attribute", kName);
    }
    attribute = args.positional.front();
    args.positional.erase(args.positional.begin());
  }
  const AttributePath path(attribute);
  std::optional<std::string> name;  // of the test; if missing, truth is tested
  if (!args.positional.empty()) {
    name = take_name(kName, args);
  } else {
    bind_none(kName, args);
  }
  const TestCode test = name ? find_test(*name) : nullptr;
  std::vector<Value> selected;
  for (Value& item : items_if_true(in, value)) {
    in.budget().charge(1 + std::ssize(args.positional));
    if (name && test == nullptr) fail(ErrorCode::kUsage, "{}: {}", kName, unknown_test(*name));
    const Value tested = path.get(in, item);
    Arguments copy = args;
    const bool passes = test == nullptr ? truth(tested) : test(in, tested, copy);
    if (passes == wanted) selected.push_back(std::move(item));
  }
  return Value(in.make<Generator>(std::move(selected)));
}

Value attr(Interpreter& in, const Value& value, Arguments& args) {
  const auto [name] = bind("attr", {"name"}, 1, args);
  const TextPtr text = text_argument("attr", "name", *name);
  if (value.is<DictPtr>() && find_method(value, text->bytes()) == nullptr) {  // entries don't count
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", text->bytes()));
  }
  return in.attribute(value, text->bytes());
}

}  // namespace

std::span<const NamedFilter> selecting_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"default", &default_value},
      {"d", &default_value},
      {"map", &map},
      {"select", &select<true, false>},
      {"reject", &select<false, false>},
      {"selectattr", &select<true, true>},
      {"rejectattr", &select<false, true>},
      {"attr", &attr},
  };
  return kFilters;
}

}  // namespace snapkv::jinja
