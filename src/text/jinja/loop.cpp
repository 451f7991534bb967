// SPDX-License-Identifier: MIT
#include "text/jinja/loop.h"

#include <utility>

#include "text/jinja/operators.h"

namespace snapkv::jinja {

void LoopContext::print(Budget&, TextBuilder& out) const {
  const int64_t total = count_.value_or(std::ssize(items_));
  out.append(fmt::format("<LoopContext {}/{}>", index_ + 1, total));
}

std::optional<Value> LoopContext::fetch(Interpreter& in) {
  while (at_ < items_.size()) {
    Value item = std::move(items_[at_++]);
    if (loop_.test == nullptr) return item;
    const ScopePtr inner = in.new_scope(scope_);
    loop_.target.assign(in, inner, item);
    if (truth(in.evaluate(*loop_.test, inner))) return item;
  }
  return std::nullopt;
}

bool LoopContext::has_next(Interpreter& in) {
  if (!upcoming_.empty()) return true;
  std::optional<Value> item = fetch(in);
  if (item) upcoming_.push_back(std::move(*item));
  return item.has_value();
}

int64_t LoopContext::count(Interpreter& in) {
  if (!count_) {
    while (std::optional<Value> item = fetch(in)) upcoming_.push_back(std::move(*item));
    count_ = index_ + 1 + std::ssize(upcoming_);
  }
  return *count_;
}

std::optional<Value> LoopContext::next(Interpreter& in) {
  if (!has_next(in)) return std::nullopt;
  previous_ = std::exchange(current_, std::move(upcoming_.front()));
  upcoming_.pop_front();
  ++index_;
  return current_;
}

void LoopContext::finish() {
  items_.clear();
  items_.shrink_to_fit();
  upcoming_.clear();
  at_ = 0;
  scope_.reset();
}

std::optional<Value> LoopContext::attribute(Interpreter& in, std::string_view name) {
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(!has_next(in));
  if (name == "length") return Value(count(in));
  if (name == "revindex") return Value(count(in) - index_);
  if (name == "revindex0") return Value(count(in) - index_ - 1);
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem") {
    return index_ == 0 ? Value::undefined("there is no previous item") : previous_;
  }
  if (name == "nextitem") {
    return has_next(in) ? upcoming_.front() : Value::undefined("there is no next item");
  }
  if (name == "cycle") return Value(in.make<Function>("cycle", &cycle, Value(this)));
  if (name == "changed") return Value(in.make<Function>("changed", &changed, Value(this)));
  return std::nullopt;
}

Value LoopContext::cycle(Interpreter&, const Value& self, Arguments& args) {
  const auto* loop = self.object<LoopContext>();
  const std::vector<Value>& values = args.positional;
  if (values.empty() || !args.keyword.empty()) {
    fail(ErrorCode::kUsage, "loop.cycle() needs values to choose from");
  }
  return values[loop->index_ % std::ssize(values)];
}

Value LoopContext::changed(Interpreter& in, const Value& self, Arguments& args) {
  auto* loop = self.object<LoopContext>();
  const Value now = Value::tuple(args.positional);
  const bool same =
      loop->last_changed_ && equal(in.budget(), now, Value::tuple(*loop->last_changed_));
  loop->last_changed_ = std::move(args.positional);
  return Value(!same);
}

Value LoopContext::call(Interpreter& in, Arguments args) {
  if (!loop_.recursive || scope_ == nullptr) {
    fail(ErrorCode::kUsage, "loop() can only be called inside a loop marked 'recursive'");
  }
  if (args.positional.size() != 1 || !args.keyword.empty()) {
    fail(ErrorCode::kUsage, "loop() takes one argument: what to loop over");
  }
  return Value(
      in.capture_output([&] { loop_.run(in, scope_, args.positional.front(), depth_ + 1); }));
}

Flow For::execute(Interpreter& in, const ScopePtr& scope) const {
  const Value items = in.evaluate(*iterable, scope);
  in.set_line(line);
  return run(in, scope, items, 0);
}

Flow For::run(Interpreter& in, const ScopePtr& scope, const Value& items, int64_t recursion) const {
  const Nesting nesting(in.budget());
  auto* loop = in.make<LoopContext>(*this, scope, items_of(in, items), recursion);
  bool completed_any = false;
  while (std::optional<Value> item = loop->next(in)) {
    const ScopePtr inner = in.new_scope(scope);
    in.set_line(line);
    target.assign(in, inner, *item);
    inner->set(in.budget(), "loop", Value(loop));
    const Flow flow = in.execute(body, inner);
    if (flow == Flow::break_loop) break;
    // As in Jinja, the else part is for loops in which no run of the body reached its end.
    if (flow == Flow::next) completed_any = true;
  }
  loop->finish();
  if (completed_any) return Flow::next;
  return in.execute(otherwise, in.new_scope(scope));
}

}  // namespace snapkv::jinja
