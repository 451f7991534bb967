// SPDX-License-Identifier: MIT
// LoopContext: the variable `loop` inside a for statement. Items are tested only when they are
// needed, so that the loop's `if` sees the changes its body has made so far.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "text/jinja/interpreter.h"

namespace snapkv::jinja {

class LoopContext final : public Object {
 public:
  /// `items` are filtered by the loop's own `if`. `scope` is the scope around the loop.
  LoopContext(const For& loop, ScopePtr scope, std::vector<Value> items, int64_t depth)
      : loop_(loop), scope_(std::move(scope)), items_(std::move(items)), depth_(depth) {}

  std::string_view type_name() const override { return "LoopContext"; }
  void print(Budget& budget, TextBuilder& out) const override;
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return true; }
  /// loop(children): runs a `recursive` loop again.
  Value call(Interpreter& in, Arguments args) override;

  /// Moves to the next item; nullopt at the end.
  std::optional<Value> next(Interpreter& in);
  /// Ends the loop and releases what it holds.
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
  size_t at_ = 0;               // index into items_
  std::deque<Value> upcoming_;  // items that already passed the test
  int64_t index_ = -1;          // of the current item, from 0
  int64_t depth_;               // of recursion, from 0
  Value previous_, current_;
  std::optional<int64_t> count_;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace snapkv::jinja
