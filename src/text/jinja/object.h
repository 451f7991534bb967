// SPDX-License-Identifier: MIT
// Object: a value that is neither text, number nor container: functions, macros, namespaces, loops
// and the results of filters like map(). The interpreter owns all objects until the rendering ends,
// so values may refer to each other in circles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace snapkv::jinja {

class Interpreter;

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;

  /// Removes and returns a keyword argument; nullopt if it is not there.
  std::optional<Value> take(std::string_view name);
};

class Object {
 public:
  virtual ~Object() = default;
  /// The type's name in Python: "generator".
  virtual std::string_view type_name() const = 0;
  /// Appends the text that printing the object shows.
  virtual void print(Budget& budget, TextBuilder& out) const = 0;
  virtual std::optional<Value> attribute(Interpreter&, std::string_view) { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& in, Arguments args);
  /// The number of items; nullopt if the object has no length.
  virtual std::optional<int64_t> length() const { return std::nullopt; }
  virtual bool iterable() const { return false; }
  /// All items. A generator returns them only once.
  virtual std::vector<Value> take_items(Interpreter& in);
  virtual std::optional<Value> item(int64_t) const { return std::nullopt; }
  /// Whether item() works for indices 0 to length() - 1.
  virtual bool has_items() const { return false; }
};

/// Items that can be read only once: the result of map(), select() and others.
class Generator final : public Object {
 public:
  explicit Generator(std::vector<Value> values) : values_(std::move(values)) {}
  std::string_view type_name() const override { return "generator"; }
  void print(Budget& budget, TextBuilder& out) const override;
  bool iterable() const override { return true; }
  std::vector<Value> take_items(Interpreter&) override { return std::exchange(values_, {}); }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::vector<Value> values_;
};

/// dict.keys(), dict.values() and dict.items().
class DictView final : public Object {
 public:
  enum class Kind { keys, values, items };
  DictView(DictPtr dict, Kind kind) : dict_(std::move(dict)), kind_(kind) {}
  std::string_view type_name() const override;
  void print(Budget& budget, TextBuilder& out) const override;
  std::optional<int64_t> length() const override { return dict_->size(); }
  bool iterable() const override { return true; }
  std::vector<Value> take_items(Interpreter& in) override;
  std::vector<Value> values() const;

 private:
  DictPtr dict_;
  Kind kind_;
};

/// range(start, stop, step).
class Range final : public Object {
 public:
  Range(int64_t start, int64_t stop, int64_t step);
  std::string_view type_name() const override { return "range"; }
  void print(Budget& budget, TextBuilder& out) const override;
  std::optional<int64_t> length() const override { return length_; }
  bool iterable() const override { return true; }
  std::vector<Value> take_items(Interpreter& in) override;
  std::optional<Value> item(int64_t index) const override;
  bool has_items() const override { return true; }

 private:
  int64_t start_, stop_, step_, length_;
};

/// namespace(a=1): an object whose attributes can be set.
class Namespace final : public Object {
 public:
  explicit Namespace(Dict values) : values_(std::move(values)) {}
  std::string_view type_name() const override { return "Namespace"; }
  void print(Budget& budget, TextBuilder& out) const override;
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  void set(Budget& budget, const std::string& name, Value value);

 private:
  Dict values_;
  mutable bool printing_ = false;  // a namespace may contain itself
};

/// A function of the language, or a method together with its object.
class Function final : public Object {
 public:
  using Code = Value (*)(Interpreter& in, const Value& self, Arguments& args);
  Function(std::string_view name, Code code, Value self = {})
      : name_(name), code_(code), self_(std::move(self)) {}
  std::string_view type_name() const override { return "function"; }
  void print(Budget& budget, TextBuilder& out) const override;
  bool callable() const override { return true; }
  Value call(Interpreter& in, Arguments args) override { return code_(in, self_, args); }

 private:
  std::string_view name_;
  Code code_;
  Value self_;
};

}  // namespace snapkv::jinja
