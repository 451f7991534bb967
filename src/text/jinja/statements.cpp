// SPDX-License-Identifier: MIT
// The execution of statements; loops and macros have their own files.
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace snapkv::jinja {

Flow Data::execute(Interpreter& in, const ScopePtr&) const {
  in.out().append(text);
  return Flow::next;
}

Flow Output::execute(Interpreter& in, const ScopePtr& scope) const {
  const Value shown = in.evaluate(*value, scope);
  in.set_line(line);
  print(in.budget(), shown, in.out());
  return Flow::next;
}

void Target::assign(Interpreter& in, const ScopePtr& scope, const Value& value) const {
  if (is_tuple) {
    const std::vector<Value> values = items_of(in, value);
    if (values.size() != parts.size()) {
      fail(ErrorCode::kUsage, "{} values to unpack where {} are expected", values.size(),
           parts.size());
    }
    for (size_t i = 0; i < parts.size(); ++i) parts[i].assign(in, scope, values[i]);
  } else if (attribute.empty()) {
    scope->set(in.budget(), name, value);
  } else if (auto* names = in.lookup(name, scope).object<Namespace>()) {
    names->set(in.budget(), attribute, value);
  } else {
    fail(ErrorCode::kUsage, "can't set {}.{}: '{}' is not a namespace", name, attribute, name);
  }
}

Flow If::execute(Interpreter& in, const ScopePtr& scope) const {
  for (const auto& [test, body] : branches) {
    if (truth(in.evaluate(*test, scope))) return in.execute(body, scope);
  }
  return in.execute(otherwise, scope);
}

Flow Set::execute(Interpreter& in, const ScopePtr& scope) const {
  const Value result = in.evaluate(*value, scope);
  in.set_line(line);
  target.assign(in, scope, result);
  return Flow::next;
}

Flow SetBlock::execute(Interpreter& in, const ScopePtr& scope) const {
  const ScopePtr inner = in.new_scope(scope);
  Value result(in.capture(body, inner));
  if (filters != nullptr) {
    inner->set(in.budget(), kBodyName, std::move(result));
    result = in.evaluate(*filters, inner);
  }
  in.set_line(line);
  target.assign(in, scope, result);
  return Flow::next;
}

Flow FilterBlock::execute(Interpreter& in, const ScopePtr& scope) const {
  const ScopePtr inner = in.new_scope(scope);
  inner->set(in.budget(), kBodyName, Value(in.capture(body, inner)));
  const Value result = in.evaluate(*filters, inner);
  in.set_line(line);
  print(in.budget(), result, in.out());
  return Flow::next;
}

Flow With::execute(Interpreter& in, const ScopePtr& scope) const {
  const ScopePtr inner = in.new_scope(scope);
  for (const auto& [target, value] : values) {
    target.assign(in, inner, in.evaluate(*value, scope));
  }
  return in.execute(body, inner);
}

Flow GenerationBlock::execute(Interpreter& in, const ScopePtr& scope) const {
  return in.execute(body, in.new_scope(scope));
}

}  // namespace snapkv::jinja
