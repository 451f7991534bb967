// SPDX-License-Identifier: MIT
// Value: what an expression of the template language has as its value, with Python's meaning of
// types, truth, equality and order. Values are immutable, as they are in the sandbox that
// transformers renders templates in; only an Object can change (a namespace, a loop). Used by every
// part of the interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/text.h"

namespace snapkv::jinja {

class Dict;
class Object;
struct Items;
struct List;
struct Tuple;

/// The value of a name or attribute that is not there. It prints as nothing; other uses fail with
/// `why`: "'x' is undefined".
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};

using ListPtr = std::shared_ptr<const List>;
using TuplePtr = std::shared_ptr<const Tuple>;
using DictPtr = std::shared_ptr<const Dict>;

/// Lists and dictionaries in each other: deeper is an error, so that functions that descend into
/// them need little stack.
constexpr int kMaxValueDepth = 128;

class Value {
 public:
  Value() = default;  // undefined, without a reason
  explicit Value(Undefined v) : v_(std::move(v)) {}
  explicit Value(None v) : v_(v) {}
  explicit Value(bool v) : v_(v) {}
  explicit Value(int64_t v) : v_(v) {}
  explicit Value(double v) : v_(v) {}
  explicit Value(TextPtr v) : v_(std::move(v)) {}
  explicit Value(ListPtr v) : v_(std::move(v)) {}
  explicit Value(TuplePtr v) : v_(std::move(v)) {}
  explicit Value(DictPtr v) : v_(std::move(v)) {}
  explicit Value(Object* v) : v_(v) {}
  template <typename T>
  requires(!std::is_convertible_v<T, Object*>) explicit Value(T) =
      delete;  // no conversions: a pointer is not a bool

  static Value text(std::string bytes) { return Value(make_text(std::move(bytes))); }
  static Value list(std::vector<Value> values);
  static Value tuple(std::vector<Value> values);
  static Value undefined(std::string why);

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(v_);
  }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&v_);
  }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_text() const { return is<TextPtr>(); }
  /// int or bool: what Python takes for an integer.
  bool is_integer() const { return is<int64_t>() || is<bool>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  int64_t integer() const { return is<bool>() ? std::get<bool>(v_) : std::get<int64_t>(v_); }
  double number() const { return is<double>() ? std::get<double>(v_) : double(integer()); }
  const Text& text() const { return *std::get<TextPtr>(v_); }
  const TextPtr& text_ptr() const { return std::get<TextPtr>(v_); }
  const Dict& dict() const { return *std::get<DictPtr>(v_); }
  /// The values of a list or tuple; nullptr for others.
  const Items* items() const;
  /// nullptr when it is no Object of this class.
  template <typename T>
  T* object() const {
    const auto* pointer = std::get_if<Object*>(&v_);
    return pointer != nullptr ? dynamic_cast<T*>(*pointer) : nullptr;
  }

  /// Python's name of the type: "str", "dict", "NoneType".
  std::string_view type_name() const;
  int depth() const;

 private:
  std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr, TuplePtr, DictPtr, Object*>
      v_;
};

/// The values of a list or tuple.
struct Items {
  explicit Items(std::vector<Value> list);
  std::vector<Value> values;
  int depth;  // 1 + that of the deepest value
};
struct List : Items {
  using Items::Items;
};
struct Tuple : Items {
  explicit Tuple(std::vector<Value> list, bool group = false)
      : Items(std::move(list)), is_group(group) {}
  bool is_group;  // of groupby: has the attributes `grouper` and `list`
};
/// Keeps the order in which keys were first added. Keys are texts, numbers, none or tuples of them.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  /// Throws when the key is of a type that can't be one.
  void set(Budget& budget, Value key, Value value);
  /// nullptr when absent.
  const Value* find(Budget& budget, const Value& key) const;
  const Value* find(Budget& budget, std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int depth() const { return depth_; }

 private:
  /// Before a search for a key with this hash: keys may be chosen to share a bucket.
  void charge_search(Budget& budget, size_t code) const;

  std::vector<Entry> entries_;
  std::unordered_multimap<size_t, size_t> index_;  // hash of the key -> place in entries_
  int depth_ = 1;
};

/// Python's truth: not false, zero, empty, none or undefined.
bool truth(const Value& value);
/// Python's ==: 1 == 1.0 == true; a list never equals a tuple.
bool equal(Budget& budget, const Value& a, const Value& b);
/// Less than 0, 0 or more than 0. Throws where Python has no order, naming `op`: "<".
int compare(Budget& budget, const Value& a, const Value& b, std::string_view op);
/// Throws where Python can't: lists and dictionaries.
size_t hash(Budget& budget, const Value& value);
/// Compares exactly, without rounding the integer.
int compare_numbers(int64_t a, double b);

/// Throws "unsupported operand ..." and the like for an undefined value: the reason it is.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace snapkv::jinja
