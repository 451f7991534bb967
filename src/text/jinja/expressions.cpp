// SPDX-License-Identifier: MIT
// The evaluation of expressions.
#include <algorithm>
#include <optional>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/tests.h"

namespace snapkv::jinja {
namespace {

/// The elements that start:stop:step selects, as Python resolves it for a sequence of `length`.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

std::optional<int64_t> slice_part(Interpreter& in, const ScopePtr& scope, const Expr* expr) {
  if (expr == nullptr) return std::nullopt;
  const Value value = in.evaluate(*expr, scope);
  if (value.is_none()) return std::nullopt;
  if (!value.is_integer()) {
    fail(ErrorCode::kUsage, "the parts of a slice must be integers or none, not {}",
         value.type_name());
  }
  return value.integer();
}

SliceRange slice_range(std::optional<int64_t> start, std::optional<int64_t> stop,
                       std::optional<int64_t> step, int64_t length) {
  SliceRange range;
  range.step = step.value_or(1);
  if (range.step == 0) fail(ErrorCode::kUsage, "the step of a slice can't be zero");
  // A step beyond the length makes no difference, and -step must not overflow.
  range.step = std::clamp(range.step, -length - 1, length + 1);
  const bool forward = range.step > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? length : length - 1;
  const auto resolve = [&](std::optional<int64_t> part, int64_t otherwise) {
    if (!part) return otherwise;
    return std::clamp(*part < 0 ? *part + length : *part, low, high);
  };
  range.start = resolve(start, forward ? low : high);
  const int64_t end = resolve(stop, forward ? high : low);
  const int64_t distance = forward ? end - range.start : range.start - end;
  const int64_t stride = forward ? range.step : -range.step;
  range.count = distance > 0 ? (distance + stride - 1) / stride : 0;
  return range;
}

Value slice_text(Budget& budget, const TextPtr& text, const SliceRange& range) {
  if (range.step == 1) {
    budget.charge_bytes(text->bytes().size());
    const size_t begin = text->offset(range.start);
    size_t end = begin;
    for (int64_t i = 0; i < range.count; ++i) end += char_bytes(text->bytes()[end]);
    return Value(substring(budget, *text, begin, end));
  }
  std::vector<size_t> offsets;  // where each character begins
  budget.charge(text->size() / 8 + range.count);
  for (size_t at = 0; at < text->bytes().size(); at += char_bytes(text->bytes()[at])) {
    offsets.push_back(at);
  }
  TextBuilder out(budget);
  for (int64_t i = 0; i < range.count; ++i) {
    const size_t at = offsets[range.start + i * range.step];
    out.append(*text, at, at + char_bytes(text->bytes()[at]));
  }
  return Value(out.finish(text->markup()));
}

bool compares(Interpreter& in, const Value& a, std::string_view op, const Value& b) {
  Budget& budget = in.budget();
  if (op == "==") return equal(budget, a, b);
  if (op == "!=") return !equal(budget, a, b);
  if (op == "in") return contains(in, b, a);
  if (op == "not in") return !contains(in, b, a);
  const auto is_nan = [](const Value& v) { return v.is<double>() && v.number() != v.number(); };
  const int order = compare(budget, a, b, op);
  if (is_nan(a) || is_nan(b)) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

}  // namespace

Value Name::evaluate(Interpreter& in, const ScopePtr& scope) const {
  return in.lookup(name, scope);
}

Value Sequence::evaluate(Interpreter& in, const ScopePtr& scope) const {
  std::vector<Value> items;
  items.reserve(values.size());
  for (const ExprPtr& value : values) items.push_back(in.evaluate(*value, scope));
  return is_tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Value Mapping::evaluate(Interpreter& in, const ScopePtr& scope) const {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key, value] : entries) {
    Value k = in.evaluate(*key, scope);
    dict->set(in.budget(), std::move(k), in.evaluate(*value, scope));
  }
  return Value(DictPtr(std::move(dict)));
}

Value Attribute::evaluate(Interpreter& in, const ScopePtr& scope) const {
  const Value value = in.evaluate(*object, scope);
  in.set_line(line);
  return in.attribute(value, name);
}

Value Subscript::evaluate(Interpreter& in, const ScopePtr& scope) const {
  const Value value = in.evaluate(*object, scope);
  const Value at = in.evaluate(*key, scope);
  in.set_line(line);
  return in.item(value, at);
}

Value Slice::evaluate(Interpreter& in, const ScopePtr& scope) const {
  const Value value = in.evaluate(*object, scope);
  const auto first = slice_part(in, scope, start.get());
  const auto end = slice_part(in, scope, stop.get());
  const auto stride = slice_part(in, scope, step.get());
  in.set_line(line);
  if (value.is_undefined()) fail_undefined(value);
  const auto* sequence = value.object<Object>();
  const bool has_items = sequence != nullptr && sequence->has_items();
  if (!value.is_text() && value.items() == nullptr && !has_items) {
    fail(ErrorCode::kUsage, "'{}' object can't be sliced", value.type_name());
  }
  const SliceRange range = slice_range(first, end, stride, length_of(value));
  if (value.is_text()) return slice_text(in.budget(), value.text_ptr(), range);
  in.budget().charge(range.count);
  std::vector<Value> items;
  for (int64_t i = 0; i < range.count; ++i) {
    const int64_t at = range.start + i * range.step;
    items.push_back(has_items ? *sequence->item(at) : value.items()->values[at]);
  }
  return value.is<TuplePtr>() ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

Arguments CallArguments::evaluate(Interpreter& in, const ScopePtr& scope) const {
  Arguments arguments;
  for (const ExprPtr& value : positional) {
    arguments.positional.push_back(in.evaluate(*value, scope));
  }
  if (star != nullptr) {
    for (Value& value : items_of(in, in.evaluate(*star, scope))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  for (const auto& [name, value] : keyword) {
    arguments.keyword.emplace_back(name, in.evaluate(*value, scope));
  }
  if (double_star == nullptr) return arguments;
  const Value more = in.evaluate(*double_star, scope);
  if (!more.is<DictPtr>()) {
    fail(ErrorCode::kUsage, "the argument after ** must be a dict, not {}", more.type_name());
  }
  for (const auto& [key, value] : more.dict().entries()) {
    in.budget().charge(std::ssize(arguments.keyword));
    if (!key.is_text()) fail(ErrorCode::kUsage, "the keys of the argument after ** must be str");
    for (const auto& [name, other] : arguments.keyword) {
      if (name != key.text().bytes()) continue;
      fail(ErrorCode::kUsage, "argument '{}' is given twice", name);
    }
    arguments.keyword.emplace_back(key.text().bytes(), value);
  }
  return arguments;
}

Value Call::evaluate(Interpreter& in, const ScopePtr& scope) const {
  return evaluate_with_caller(in, scope, Value());
}

Value Call::evaluate_with_caller(Interpreter& in, const ScopePtr& scope,
                                 const Value& caller) const {
  const auto evaluate_arguments = [&] {
    Arguments list = arguments.evaluate(in, scope);
    if (!caller.is_undefined()) list.keyword.emplace_back("caller", caller);
    in.set_line(line);
    return list;
  };
  // Calls a method without making a Function value first.
  if (const auto* attribute = dynamic_cast<const Attribute*>(callee.get())) {
    const Value object = in.evaluate(*attribute->object, scope);
    in.set_line(attribute->line);
    const Method* method = object.is_undefined() ? nullptr : find_method(object, attribute->name);
    if (method != nullptr && method->code != nullptr) {
      Arguments list = evaluate_arguments();
      return method->code(in, object, list);
    }
    const Value function = in.attribute(object, attribute->name);
    return in.call(function, evaluate_arguments());
  }
  const Value function = in.evaluate(*callee, scope);
  return in.call(function, evaluate_arguments());
}

Value Filter::evaluate(Interpreter& in, const ScopePtr& scope) const {
  const FilterCode code = find_filter(name);
  if (code == nullptr) {
    in.set_line(line);
    fail(ErrorCode::kUsage, "{}", unknown_filter(name));
  }
  const Value value = in.evaluate(*operand, scope);
  Arguments list = arguments.evaluate(in, scope);
  in.set_line(line);
  return code(in, value, list);
}

Value Test::evaluate(Interpreter& in, const ScopePtr& scope) const {
  const TestCode code = find_test(name);
  if (code == nullptr) {
    in.set_line(line);
    fail(ErrorCode::kUsage, "{}", unknown_test(name));
  }
  const Value value = in.evaluate(*operand, scope);
  Arguments list = arguments.evaluate(in, scope);
  in.set_line(line);
  return Value(code(in, value, list));
}

Value Unary::evaluate(Interpreter& in, const ScopePtr& scope) const {
  const Value value = in.evaluate(*operand, scope);
  in.set_line(line);
  return op == "not" ? Value(!truth(value)) : signed_value(op, value);
}

Value Arithmetic::evaluate(Interpreter& in, const ScopePtr& scope) const {
  Value value = in.evaluate(*first, scope);
  for (const auto& [op, operand] : rest) {
    const Value other = in.evaluate(*operand, scope);
    in.set_line(line);
    value = arithmetic(in, op, value, other);
  }
  return value;
}

Value Comparison::evaluate(Interpreter& in, const ScopePtr& scope) const {
  Value left = in.evaluate(*first, scope);
  for (const auto& [op, operand] : rest) {
    Value right = in.evaluate(*operand, scope);
    in.set_line(line);
    if (!compares(in, left, op, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Logic::evaluate(Interpreter& in, const ScopePtr& scope) const {
  Value value = in.evaluate(*first, scope);
  for (const auto& [op, operand] : rest) {
    if (truth(value) == (op == "or")) return value;
    value = in.evaluate(*operand, scope);
  }
  return value;
}

Value Concat::evaluate(Interpreter& in, const ScopePtr& scope) const {
  TextBuilder out(in.budget());
  print(in.budget(), in.evaluate(*first, scope), out);
  for (const auto& [op, operand] : rest) {
    const Value value = in.evaluate(*operand, scope);
    in.set_line(line);
    print(in.budget(), value, out);
  }
  return Value(out.finish());
}

Value Conditional::evaluate(Interpreter& in, const ScopePtr& scope) const {
  if (truth(in.evaluate(*test, scope))) return in.evaluate(*value, scope);
  if (otherwise != nullptr) return in.evaluate(*otherwise, scope);
  return Value::undefined(
      fmt::format("the inline if-expression on line {} was false and has no else part", line));
}

}  // namespace snapkv::jinja
