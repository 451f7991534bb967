// SPDX-License-Identifier: MIT
// LoopContext: the variable `loop` inside a for statement. Items are tested as they are needed, so
// a loop's `if` sees what its body has changed so far.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "text/jinja/interpreter.h"

namespace snapkv::jinja {

class LoopContext final : public Object {
 public:
  /// Reads `items`, which the loop's own `if` filters. `scope` is the one around the loop.
  LoopContext(const For& loop, ScopePtr scope, std::vector<Value> items, int64_t depth)
      : loop_(loop), scope_(std::move(scope)), items_(std::move(items)), depth_(depth) {}

  std::string_view type_name() const override { return "LoopContext"; }
  void print(Budget& budget, TextBuilder& out) const override;
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return true; }
  /// loop(children): the loop again, of a `recursive` one.
  Value call(Interpreter& in, Arguments args) override;

  /// Goes to the next item; nullopt at the end.
  std::optional<Value> next(Interpreter& in);
  /// The loop is over: lets go of what it holds.
  void finish();

 private:
  std::optional<Value> fetch(Interpreter& in);
  bool has_next(Interpreter& in);
  int64_t count(Interpreter& in);
  static Value cycle(Interpreter& in, const Value& self, Arguments& args);
  static Value changed(Interpreter& in, const Value& self, Arguments& args);

  const For& loop_;
  ScopePtr scope_;
  std::vector<Value> items_;
  size_t at_ = 0;               // in items_
  std::deque<Value> upcoming_;  // that passed the test already
  int64_t index_ = -1;          // of the current item, from 0
  int64_t depth_;               // of recursion, from 0
  Value previous_, current_;
  std::optional<int64_t> count_;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace snapkv::jinja
