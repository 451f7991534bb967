// SPDX-License-Identifier: MIT
#include "text/jinja/object.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace snapkv::jinja {

std::optional<Value> Arguments::take(std::string_view name) {
  const auto at = std::find_if(keyword.begin(), keyword.end(),
                               [&](const auto& argument) { return argument.first == name; });
  if (at == keyword.end()) return std::nullopt;
  const Value value = at->second;
  keyword.erase(at);
  return std::make_optional(value);
}

Value Object::call(Interpreter&, Arguments) {
  fail(ErrorCode::kUsage, "'{}' object is not callable", type_name());
}
std::vector<Value> Object::take_items(Interpreter&) {
  fail(ErrorCode::kUsage, "'{}' object is not iterable", type_name());
}

void Generator::print(Budget&, TextBuilder&) const {
  fail(ErrorCode::kUsage,
       "the result of a filter such as map or select can't be printed: add '| list' or '| join'");
}

std::string_view DictView::type_name() const {
  return kind_ == Kind::keys ? "dict_keys" : kind_ == Kind::values ? "dict_values" : "dict_items";
}

std::vector<Value> DictView::values() const {
  std::vector<Value> values;
  values.reserve(dict_->entries().size());
  for (const auto& [key, value] : dict_->entries()) {
    values.push_back(kind_ == Kind::keys     ? key
                     : kind_ == Kind::values ? value
                                             : Value::tuple({key, value}));
  }
  return values;
}

std::vector<Value> DictView::take_items(Interpreter& in) {
  in.budget().charge(dict_->size());
  return values();
}

void DictView::print(Budget& budget, TextBuilder& out) const {
  out.append(type_name());
  out.append("(");
  print_repr(budget, Value::list(values()), out);
  out.append(")");
}

Range::Range(int64_t start, int64_t stop, int64_t step) : start_(start), stop_(stop), step_(step) {
  constexpr int64_t kMax = 100000;  // as in Jinja's sandbox
  // Real numbers cannot overflow, and are exact far beyond what is allowed.
  const double distance = step > 0 ? static_cast<double>(stop) - static_cast<double>(start)
                                   : static_cast<double>(start) - static_cast<double>(stop);
  const double stride = std::abs(static_cast<double>(step));
  if (distance / stride > kMax) {
    fail(ErrorCode::kRuntime, "range() of more than {} numbers", kMax);
  }
  if ((step > 0 && start >= stop) || (step < 0 && start <= stop)) {
    length_ = 0;
    return;
  }
  const auto span = static_cast<uint64_t>(step > 0 ? stop : start) -
                    static_cast<uint64_t>(step > 0 ? start : stop);
  const uint64_t magnitude =
      step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  length_ = static_cast<int64_t>((span - 1) / magnitude + 1);
}

std::optional<Value> Range::item(int64_t index) const { return Value(start_ + index * step_); }

std::vector<Value> Range::take_items(Interpreter& in) {
  in.budget().charge(length_ / 4);
  std::vector<Value> values;
  values.reserve(length_);
  for (int64_t i = 0; i < length_; ++i) values.emplace_back(start_ + i * step_);
  return values;
}

void Range::print(Budget&, TextBuilder& out) const {
  out.append(step_ == 1 ? fmt::format("range({}, {})", start_, stop_)
                        : fmt::format("range({}, {}, {})", start_, stop_, step_));
}

std::optional<Value> Namespace::attribute(Interpreter& in, std::string_view name) {
  const Value* value = values_.find(in.budget(), name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

void Namespace::set(Budget& budget, const std::string& name, Value value) {
  budget.charge(1);
  values_.set(budget, Value::text(name), std::move(value));
}

void Namespace::print(Budget& budget, TextBuilder& out) const {
  if (printing_) return out.append("<Namespace {...}>");
  printing_ = true;
  struct Done {
    bool& flag;
    ~Done() { flag = false; }
  } done{printing_};
  out.append("<Namespace ");
  print_repr(budget, Value(std::make_shared<const Dict>(values_)), out);
  out.append(">");
}

void Function::print(Budget&, TextBuilder&) const {
  fail(ErrorCode::kUsage, "the function '{}' can't be printed: call it with ()", name_);
}

}  // namespace snapkv::jinja
