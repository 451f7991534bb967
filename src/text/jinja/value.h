// SPDX-License-Identifier: MIT
// Value: the value of an expression of the template language, with Python's rules for types, truth,
// equality and order. Values are immutable, as in the sandbox in which transformers renders
// templates; only an Object (a namespace, a loop) can change.
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

/// The value of a name or attribute that does not exist. It prints as nothing; any other use fails
/// with `why`: "'x' is undefined".
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};

using ListPtr = std::shared_ptr<const List>;
using TuplePtr = std::shared_ptr<const Tuple>;
using DictPtr = std::shared_ptr<const Dict>;

/// The most levels of nested lists and dictionaries. Deeper values are an error, so that functions
/// that descend into them need little stack.
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
      delete;  // no implicit conversions: a pointer is not a bool

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
  /// int or bool: Python's integers.
  bool is_integer() const { return is<int64_t>() || is<bool>(); }
  bool is_number() const { return is_integer() || is<double>(); }
  int64_t integer() const { return is<bool>() ? std::get<bool>(v_) : std::get<int64_t>(v_); }
  double number() const { return is<double>() ? std::get<double>(v_) : double(integer()); }
  const Text& text() const { return *std::get<TextPtr>(v_); }
  const TextPtr& text_ptr() const { return std::get<TextPtr>(v_); }
  const Dict& dict() const { return *std::get<DictPtr>(v_); }
  /// The values of a list or tuple; nullptr for other values.
  const Items* items() const;
  /// Returns nullptr if the value is not an Object of this class.
  template <typename T>
  T* object() const {
    const auto* pointer = std::get_if<Object*>(&v_);
    return pointer != nullptr ? dynamic_cast<T*>(*pointer) : nullptr;
  }

  /// The type's name in Python: "str", "dict", "NoneType".
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
  int depth;  // 1 + the depth of the deepest value
};
struct List : Items {
  using Items::Items;
};
struct Tuple : Items {
  explicit Tuple(std::vector<Value> list, bool group = false)
      : Items(std::move(list)), is_group(group) {}
  bool is_group;  // made by groupby: has the attributes `grouper` and `list`
};
/// A dictionary that keeps the order in which keys were first added. Keys are texts, numbers, none
/// or tuples of these.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  /// Throws if the key's type cannot be a key.
  void set(Budget& budget, Value key, Value value);
  /// Returns nullptr if the key is absent.
  const Value* find(Budget& budget, const Value& key) const;
  const Value* find(Budget& budget, std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int depth() const { return depth_; }

 private:
  /// Charges for a search for a key with this hash, since keys may be chosen to share a bucket.
  void charge_search(Budget& budget, size_t code) const;

  std::vector<Entry> entries_;
  std::unordered_multimap<size_t, size_t> index_;  // hash of the key -> index into entries_
  int depth_ = 1;
};

/// The truth of a value as in Python: not false, zero, empty, none or undefined.
bool truth(const Value& value);
/// Python's ==: 1 == 1.0 == true; a list never equals a tuple.
bool equal(Budget& budget, const Value& a, const Value& b);
/// Negative, 0 or positive. Throws, naming `op` ("<"), if Python does not order these values.
int compare(Budget& budget, const Value& a, const Value& b, std::string_view op);
/// Throws for values that Python cannot hash: lists and dictionaries.
size_t hash(Budget& budget, const Value& value);
/// Compares exactly, without rounding the integer.
int compare_numbers(int64_t a, double b);

/// Fails with the reason why an undefined value is undefined: "'x' is undefined".
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace snapkv::jinja
