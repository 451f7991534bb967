// SPDX-License-Identifier: MIT
#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/jinja/format.h"
#include "text/jinja/interpreter.h"

namespace snapkv::jinja {
namespace {

[[noreturn]] void fail_overflow() {
  fail(ErrorCode::kUsage, "an integer would need more than 64 bits");
}
[[noreturn]] void fail_zero() { fail(ErrorCode::kUsage, "division by zero"); }

[[noreturn]] void fail_operands(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  fail(ErrorCode::kUsage, "unsupported operand types for {}: '{}' and '{}'", op, a.type_name(),
       b.type_name());
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail_zero();
  if (b == -1 && a == std::numeric_limits<int64_t>::min()) fail_overflow();
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) fail_zero();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail_zero();
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  bool square_overflows = false;
  while (exponent > 0) {
    if ((exponent & 1) != 0 &&
        (square_overflows || __builtin_mul_overflow(result, base, &result))) {
      fail_overflow();
    }
    exponent >>= 1;
    if (exponent > 0) square_overflows = __builtin_mul_overflow(base, base, &base);
  }
  return Value(result);
}

Value integer_arithmetic(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "/") {
    if (b == 0) fail_zero();
    return Value(static_cast<double>(a) / static_cast<double>(b));
  } else if (op == "//") {
    result = floor_divide(a, b);
  } else if (op == "%") {
    result = modulo(a, b);
  } else {
    return power(a, b);
  }
  if (overflow) fail_overflow();
  return Value(result);
}

double modulo(double a, double b) {
  if (b == 0) fail_zero();
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  const double rest = modulo(a, b);
  const double quotient = (a - rest) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "//") return Value(floor_divide(a, b));
  if (op == "%") return Value(modulo(a, b));
  if (op == "/") {
    if (b == 0) fail_zero();
    return Value(a / b);
  }
  if (a == 0 && b < 0) fail_zero();
  const double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
    fail(ErrorCode::kUsage, "a power of a negative number is not a real number");
  }
  if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) {
    fail(ErrorCode::kUsage, "a power is too large");
  }
  return Value(result);
}

Value add_texts(Budget& budget, const TextPtr& a, const TextPtr& b) {
  TextBuilder out(budget);
  const bool markup = a->markup() || b->markup();
  out.append(markup ? *escaped(budget, a) : *a);
  out.append(markup ? *escaped(budget, b) : *b);
  return Value(out.finish(markup));
}

std::vector<Value> joined(Budget& budget, const Items& a, const Items& b) {
  budget.charge(static_cast<int64_t>(a.values.size() + b.values.size()) / 2);
  std::vector<Value> values = a.values;
  values.insert(values.end(), b.values.begin(), b.values.end());
  return values;
}

/// A text or list repeated `times` times.
Value repeated(Budget& budget, const Value& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (value.is_text()) {
    const auto bytes = static_cast<int64_t>(value.text().bytes().size());
    int64_t total = 0;
    if (__builtin_mul_overflow(bytes, times, &total)) total = std::numeric_limits<int64_t>::max();
    budget.charge_text(total);
    budget.charge_bytes(static_cast<size_t>(total));
    TextBuilder out(budget);
    for (int64_t i = 0; i < times && bytes > 0; ++i) out.append(value.text());
    return Value(out.finish(value.text().markup()));
  }
  const std::vector<Value>& items = value.items()->values;
  int64_t total = 0;
  if (__builtin_mul_overflow(std::ssize(items), times, &total)) {
    total = std::numeric_limits<int64_t>::max();
  }
  budget.charge(total);
  std::vector<Value> values;
  for (int64_t i = 0; i < times && !items.empty(); ++i) {
    values.insert(values.end(), items.begin(), items.end());
  }
  return value.is<ListPtr>() ? Value::list(std::move(values)) : Value::tuple(std::move(values));
}

bool is_sequence(const Value& value) { return value.is_text() || value.items() != nullptr; }

}  // namespace

Value arithmetic(Interpreter& in, std::string_view op, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return integer_arithmetic(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return real_arithmetic(op, a.number(), b.number());
  if (op == "+") {
    if (a.is_text() && b.is_text()) return add_texts(in.budget(), a.text_ptr(), b.text_ptr());
    if (a.is<ListPtr>() && b.is<ListPtr>()) {
      return Value::list(joined(in.budget(), *a.items(), *b.items()));
    }
    if (a.is<TuplePtr>() && b.is<TuplePtr>()) {
      return Value::tuple(joined(in.budget(), *a.items(), *b.items()));
    }
    if ((a.is_text() || a.is<ListPtr>()) && !b.is_undefined()) {
      fail(ErrorCode::kUsage, "can only add a {0} to a {0}, not a {1}", a.type_name(),
           b.type_name());
    }
  }
  if (op == "*" && is_sequence(a) && b.is_integer()) return repeated(in.budget(), a, b.integer());
  if (op == "*" && is_sequence(b) && a.is_integer()) return repeated(in.budget(), b, a.integer());
  if (op == "%" && a.is_text()) return format_percent(in, a.text(), b);
  fail_operands(op, a, b);
}

Value signed_value(std::string_view sign, const Value& a) {
  if (a.is_integer()) return integer_arithmetic(sign, 0, a.integer());
  if (a.is<double>()) return Value(sign == "-" ? -a.number() : a.number());
  if (a.is_undefined()) fail_undefined(a);
  fail(ErrorCode::kUsage, "unsupported operand type for a sign: '{}'", a.type_name());
}

bool contains(Interpreter& in, const Value& container, const Value& item) {
  Budget& budget = in.budget();
  if (container.is_text()) {
    if (!item.is_text()) {
      if (item.is_undefined()) fail_undefined(item);
      fail(ErrorCode::kUsage, "'in' a str requires a str, not a {}", item.type_name());
    }
    budget.charge_bytes(container.text().bytes().size());
    return container.text().bytes().find(item.text().bytes()) != std::string::npos;
  }
  if (container.is<DictPtr>()) return container.dict().find(budget, item) != nullptr;
  if (container.is_undefined()) return false;
  const Items* items = container.items();
  const std::vector<Value> taken =
      items == nullptr ? items_of(in, container) : std::vector<Value>();
  const std::vector<Value>& values = items == nullptr ? taken : items->values;
  return std::any_of(values.begin(), values.end(),
                     [&](const Value& value) { return equal(budget, value, item); });
}

bool is_iterable(const Value& value) {
  if (const auto* object = value.object<Object>()) return object->iterable();
  return is_sequence(value) || value.is<DictPtr>() || value.is_undefined();
}

std::vector<Value> items_of(Interpreter& in, const Value& value) {
  Budget& budget = in.budget();
  if (const Items* items = value.items()) {
    budget.charge(std::ssize(items->values) / 2);
    return items->values;
  }
  std::vector<Value> values;
  if (value.is_text()) {
    const Text& text = value.text();
    for (size_t at = 0; at < text.bytes().size();) {
      const size_t end = at + char_bytes(text.bytes()[at]);
      budget.charge(1);
      values.emplace_back(with_markup(substring(budget, text, at, end), false));
      at = end;
    }
  } else if (value.is<DictPtr>()) {
    for (const auto& [key, entry] : value.dict().entries()) {
      budget.charge(1);
      values.push_back(key);
    }
  } else if (!is_iterable(value)) {
    fail(ErrorCode::kUsage, "'{}' object is not iterable", value.type_name());
  } else if (auto* object = value.object<Object>()) {
    values = object->take_items(in);
    budget.charge(std::ssize(values));
  }
  return values;
}

int64_t length_of(const Value& value) {
  if (value.is_text()) return value.text().size();
  if (const Items* items = value.items()) return std::ssize(items->values);
  if (value.is<DictPtr>()) return value.dict().size();
  if (value.is_undefined()) return 0;
  std::optional<int64_t> length;
  if (const auto* object = value.object<Object>()) length = object->length();
  if (!length) fail(ErrorCode::kUsage, "object of type '{}' has no len()", value.type_name());
  return *length;
}

}  // namespace snapkv::jinja
