// SPDX-License-Identifier: MIT
#include "text/jinja/tests.h"

#include <cmath>
#include <unordered_map>

#include "text/jinja/arguments.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_functions.h"

namespace snapkv::jinja {
namespace {

using Predicate = bool (*)(const Value&);
template <Predicate predicate>
bool of_value(Interpreter&, const Value& value, Arguments& args) {
  bind_none("a test of a type", args);
  return predicate(value);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is<bool>(); }
bool is_true(const Value& value) { return value.is<bool>() && truth(value); }
bool is_false(const Value& value) { return value.is<bool>() && !truth(value); }
bool is_int(const Value& value) { return value.is<int64_t>(); }
bool is_float(const Value& value) { return value.is<double>(); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_string(const Value& value) { return value.is_text(); }
bool is_mapping(const Value& value) { return value.is<DictPtr>(); }
bool is_items(const Value& value) {
  if (const auto* object = value.object<Object>()) return object->has_items();
  return value.is_text() || value.items() != nullptr || value.is<DictPtr>() || value.is_undefined();
}
bool is_escaped(const Value& value) { return value.is_text() && value.text().markup(); }
/// Python lets a template call an undefined value too.
bool is_callable(const Value& value) {
  if (value.is_undefined()) return true;
  const auto* object = value.object<Object>();
  return object != nullptr && object->callable();
}

/// value % divisor == rest
bool has_rest(Interpreter& in, const Value& value, const Value& divisor, int64_t rest) {
  return equal(in.budget(), arithmetic(in, "%", value, divisor), Value(rest));
}
bool odd(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("odd", args);
  return has_rest(in, value, Value(int64_t{2}), 1);
}
bool even(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("even", args);
  return has_rest(in, value, Value(int64_t{2}), 0);
}
bool divisibleby(Interpreter& in, const Value& value, Arguments& args) {
  const auto [num] = bind("divisibleby", {"num"}, 1, args);
  return has_rest(in, value, *num, 0);
}

template <bool want_upper>
bool in_case(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("upper or lower", args);
  return is_in_case(*to_text(in.budget(), value), want_upper);
}

bool iterable(Interpreter&, const Value& value, Arguments& args) {
  bind_none("iterable", args);
  return is_iterable(value);
}

bool in_test(Interpreter& in, const Value& value, Arguments& args) {
  const auto [seq] = bind("in", {"seq"}, 1, args);
  return contains(in, *seq, value);
}

/// Whether both are the same object; for texts and containers, whether they share one instance.
bool sameas(Interpreter&, const Value& value, Arguments& args) {
  const auto [other] = bind("sameas", {"other"}, 1, args);
  if (value.is_text() && other->is_text()) return value.text_ptr() == other->text_ptr();
  if (value.is<DictPtr>() && other->is<DictPtr>()) return &value.dict() == &other->dict();
  if (value.items() != nullptr || other->items() != nullptr) {
    return value.items() == other->items();
  }
  if (const auto* object = value.object<Object>()) return object == other->object<Object>();
  if (value.is<bool>() != other->is<bool>()) return false;
  if (value.is_number() && other->is_number()) {
    return value.is<double>() == other->is<double>() && value.number() == other->number();
  }
  return (value.is_none() && other->is_none());
}

bool filter_test(Interpreter&, const Value& value, Arguments& args) {
  bind_none("filter", args);
  return value.is_text() && find_filter(value.text().bytes()) != nullptr;
}
bool test_test(Interpreter&, const Value& value, Arguments& args) {
  bind_none("test", args);
  return value.is_text() && find_test(value.text().bytes()) != nullptr;
}

template <bool wanted>
bool equals(Interpreter& in, const Value& value, Arguments& args) {
  const auto [other] = bind("eq or ne", {"other"}, 1, args);
  return equal(in.budget(), value, *other) == wanted;
}

enum class Order { less, less_or_equal, greater, greater_or_equal };
template <Order order>
bool ordered(Interpreter& in, const Value& value, Arguments& args) {
  const auto [other] = bind("a comparison", {"other"}, 1, args);
  const int sign = compare(in.budget(), value, *other, "<");
  const auto is_nan = [](const Value& v) { return v.is<double>() && std::isnan(v.number()); };
  if (is_nan(value) || is_nan(*other)) return false;
  switch (order) {
    case Order::less:
      return sign < 0;
    case Order::less_or_equal:
      return sign <= 0;
    case Order::greater:
      return sign > 0;
    case Order::greater_or_equal:
      return sign >= 0;
  }
  return false;
}

const std::unordered_map<std::string_view, TestCode>& all_tests() {
  static const auto* tests = new std::unordered_map<std::string_view, TestCode>{
      {"defined", &of_value<&is_defined>},
      {"undefined", &of_value<&is_undefined>},
      {"none", &of_value<&is_none>},
      {"boolean", &of_value<&is_boolean>},
      {"true", &of_value<&is_true>},
      {"false", &of_value<&is_false>},
      {"integer", &of_value<&is_int>},
      {"float", &of_value<&is_float>},
      {"number", &of_value<&is_number>},
      {"string", &of_value<&is_string>},
      {"mapping", &of_value<&is_mapping>},
      {"sequence", &of_value<&is_items>},
      {"callable", &of_value<&is_callable>},
      {"escaped", &of_value<&is_escaped>},
      {"iterable", &iterable},
      {"odd", &odd},
      {"even", &even},
      {"divisibleby", &divisibleby},
      {"upper", &in_case<true>},
      {"lower", &in_case<false>},
      {"sameas", &sameas},
      {"in", &in_test},
      {"filter", &filter_test},
      {"test", &test_test},
      {"==", &equals<true>},
      {"eq", &equals<true>},
      {"equalto", &equals<true>},
      {"!=", &equals<false>},
      {"ne", &equals<false>},
      {"<", &ordered<Order::less>},
      {"lt", &ordered<Order::less>},
      {"lessthan", &ordered<Order::less>},
      {"<=", &ordered<Order::less_or_equal>},
      {"le", &ordered<Order::less_or_equal>},
      {">", &ordered<Order::greater>},
      {"gt", &ordered<Order::greater>},
      {"greaterthan", &ordered<Order::greater>},
      {">=", &ordered<Order::greater_or_equal>},
      {"ge", &ordered<Order::greater_or_equal>},
  };
  return *tests;
}

}  // namespace

TestCode find_test(std::string_view name) {
  const auto at = all_tests().find(name);
  return at != all_tests().end() ? at->second : nullptr;
}

std::string unknown_test(std::string_view name) {
  return fmt::format("the test '{}' is not supported", name);
}

}  // namespace snapkv::jinja
