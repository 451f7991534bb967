// SPDX-License-Identifier: MIT
#include "text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "text/jinja/object.h"

namespace snapkv::jinja {
namespace {

int deeper(int depth) {
  if (depth >= kMaxValueDepth) {
    fail(ErrorCode::kRuntime, "lists and dictionaries nested more than {} levels deep",
         kMaxValueDepth);
  }
  return depth + 1;
}

size_t mix(size_t a, size_t b) { return a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2)); }

size_t hash_number(double number) {
  // A number that equals an integer must have the integer's hash.
  if (number >= -0x1p63 && number < 0x1p63 && std::trunc(number) == number) {
    return std::hash<int64_t>()(static_cast<int64_t>(number));
  }
  return std::hash<double>()(number);
}

[[noreturn]] void fail_order(const Value& a, const Value& b, std::string_view op) {
  fail(ErrorCode::kUsage, "'{}' not supported between instances of '{}' and '{}'", op,
       a.type_name(), b.type_name());
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  if (a.is_integer()) return jinja::compare_numbers(a.integer(), b.number());
  if (b.is_integer()) return -jinja::compare_numbers(b.integer(), a.number());
  return a.number() < b.number() ? -1 : a.number() > b.number();
}

bool is_nan(const Value& value) { return value.is<double>() && std::isnan(value.number()); }

bool equal_items(Budget& budget, const Items& a, const Items& b) {
  if (&a == &b) return true;
  if (a.values.size() != b.values.size()) return false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (!equal(budget, a.values[i], b.values[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.size() != b.size()) return false;
  return std::all_of(a.entries().begin(), a.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(budget, entry.first);
    return other != nullptr && equal(budget, entry.second, *other);
  });
}

int compare_items(Budget& budget, const Items& a, const Items& b, std::string_view op) {
  const size_t n = std::min(a.values.size(), b.values.size());
  for (size_t i = 0; i < n; ++i) {
    if (equal(budget, a.values[i], b.values[i])) continue;
    return compare(budget, a.values[i], b.values[i], op);
  }
  return a.values.size() < b.values.size() ? -1 : a.values.size() > b.values.size();
}

}  // namespace

Items::Items(std::vector<Value> list) : values(std::move(list)), depth(1) {
  for (const Value& value : values) depth = std::max(depth, deeper(value.depth()));
}

Value Value::list(std::vector<Value> values) {
  return Value(std::make_shared<const List>(std::move(values)));
}
Value Value::tuple(std::vector<Value> values) {
  return Value(std::make_shared<const Tuple>(std::move(values)));
}
Value Value::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

const Items* Value::items() const {
  if (const auto* list = get_if<ListPtr>()) return list->get();
  if (const auto* tuple = get_if<TuplePtr>()) return tuple->get();
  return nullptr;
}

std::string_view Value::type_name() const {
  struct Visitor {
    std::string_view operator()(const Undefined&) { return "Undefined"; }
    std::string_view operator()(None) { return "NoneType"; }
    std::string_view operator()(bool) { return "bool"; }
    std::string_view operator()(int64_t) { return "int"; }
    std::string_view operator()(double) { return "float"; }
    std::string_view operator()(const TextPtr&) { return "str"; }
    std::string_view operator()(const ListPtr&) { return "list"; }
    std::string_view operator()(const TuplePtr&) { return "tuple"; }
    std::string_view operator()(const DictPtr&) { return "dict"; }
    std::string_view operator()(const Object* object) { return object->type_name(); }
  };
  return std::visit(Visitor(), v_);
}

int Value::depth() const {
  if (const Items* list = items()) return list->depth;
  return is<DictPtr>() ? dict().depth() : 0;
}

void Dict::charge_search(Budget& budget, size_t code) const {
  if (index_.empty()) return;
  budget.charge(static_cast<int64_t>(index_.bucket_size(index_.bucket(code))) / 8);
}

void Dict::set(Budget& budget, Value key, Value value) {
  depth_ = std::max({depth_, deeper(key.depth()), deeper(value.depth())});
  const size_t code = hash(budget, key);
  charge_search(budget, code);
  const auto [begin, end] = index_.equal_range(code);
  for (auto at = begin; at != end; ++at) {
    Entry& entry = entries_[at->second];
    if (!equal(budget, entry.first, key)) continue;
    entry.second = std::move(value);
    return;
  }
  index_.emplace(code, entries_.size());
  entries_.emplace_back(std::move(key), std::move(value));
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  if (entries_.empty()) return nullptr;
  const size_t code = hash(budget, key);
  charge_search(budget, code);
  const auto [begin, end] = index_.equal_range(code);
  for (auto at = begin; at != end; ++at) {
    const Entry& entry = entries_[at->second];
    if (equal(budget, entry.first, key)) return &entry.second;
  }
  return nullptr;
}

const Value* Dict::find(Budget& budget, std::string_view key) const {
  const size_t code = std::hash<std::string_view>()(key);
  charge_search(budget, code);
  const auto [begin, end] = index_.equal_range(code);
  for (auto at = begin; at != end; ++at) {
    const Entry& entry = entries_[at->second];
    if (entry.first.is_text() && entry.first.text().bytes() == key) return &entry.second;
  }
  return nullptr;
}

bool truth(const Value& value) {
  if (value.is_number()) return value.number() != 0;
  if (value.is_text()) return !value.text().empty();
  if (const Items* list = value.items()) return !list->values.empty();
  if (value.is<DictPtr>()) return value.dict().size() > 0;
  if (const auto* object = value.object<Object>()) return object->length().value_or(1) != 0;
  return false;
}

bool equal(Budget& budget, const Value& a, const Value& b) {
  budget.charge(1);
  if (a.is_number() && b.is_number()) {
    return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
  }
  if (a.is_text() && b.is_text()) {
    budget.charge_bytes(std::min(a.text().bytes().size(), b.text().bytes().size()));
    return a.text().bytes() == b.text().bytes();
  }
  if (a.is<DictPtr>() && b.is<DictPtr>()) return equal_dicts(budget, a.dict(), b.dict());
  if (a.items() != nullptr && b.items() != nullptr && a.is<ListPtr>() == b.is<ListPtr>()) {
    return equal_items(budget, *a.items(), *b.items());
  }
  if (a.is<Object*>() && b.is<Object*>()) return *a.get_if<Object*>() == *b.get_if<Object*>();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

int compare(Budget& budget, const Value& a, const Value& b, std::string_view op) {
  budget.charge(1);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is_text() && b.is_text()) {
    budget.charge_bytes(std::min(a.text().bytes().size(), b.text().bytes().size()));
    return a.text().bytes().compare(b.text().bytes());  // UTF-8 sorts in the order of code points
  }
  if (a.items() != nullptr && b.items() != nullptr && a.is<ListPtr>() == b.is<ListPtr>()) {
    return compare_items(budget, *a.items(), *b.items(), op);
  }
  fail_order(a, b, op);
}

size_t hash(Budget& budget, const Value& value) {
  budget.charge(1);
  if (value.is_integer()) return std::hash<int64_t>()(value.integer());
  if (value.is<double>()) return hash_number(value.number());
  if (value.is_text()) {
    budget.charge_bytes(value.text().bytes().size());
    return std::hash<std::string_view>()(value.text().bytes());
  }
  if (value.is<TuplePtr>()) {
    size_t code = 1;
    for (const Value& item : value.items()->values) code = mix(code, hash(budget, item));
    return code;
  }
  if (value.is<ListPtr>() || value.is<DictPtr>()) {
    fail(ErrorCode::kUsage, "unhashable type: '{}'", value.type_name());
  }
  if (const auto* object = value.get_if<Object*>()) return std::hash<const void*>()(*object);
  return value.is_none() ? 2 : 3;
}

int compare_numbers(int64_t a, double b) {
  if (b >= 0x1p63) return -1;
  if (b < -0x1p63) return 1;
  const auto whole = static_cast<int64_t>(b);  // rounded towards zero
  if (a != whole) return a < whole ? -1 : 1;
  const double rest = b - static_cast<double>(whole);
  return rest > 0 ? -1 : rest < 0;
}

void fail_undefined(const Value& value) {
  const auto* undefined = value.get_if<Undefined>();
  const bool known = undefined != nullptr && undefined->why != nullptr;
  fail(ErrorCode::kUsage, "{}", known ? *undefined->why : "a value is undefined");
}

}  // namespace snapkv::jinja
