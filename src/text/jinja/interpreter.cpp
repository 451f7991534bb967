// SPDX-License-Identifier: MIT
#include "text/jinja/interpreter.h"

#include "text/jinja/functions.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"

namespace snapkv::jinja {
namespace {

/// The description of an object in Jinja's message about a missing attribute.
std::string describe(const Value& object) {
  return object.is_none() ? "None" : fmt::format("{} object", object.type_name());
}

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", describe(object), name));
}

/// Element `index` of a sequence; nullopt if it is out of range or `object` has no elements.
std::optional<Value> element(Budget& budget, const Value& object, int64_t index) {
  const auto* sequence = object.object<Object>();
  const bool has_elements = object.is_text() || object.items() != nullptr ||
                            (sequence != nullptr && sequence->has_items());
  if (!has_elements) return std::nullopt;
  const int64_t length = length_of(object);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  if (const Items* items = object.items()) return items->values[index];
  if (sequence != nullptr) return sequence->item(index);
  const Text& text = object.text();
  const size_t at = text.offset(index);
  budget.charge_bytes(at);
  return Value(substring(budget, text, at, at + char_bytes(text.bytes()[at])));
}

}  // namespace

RenderedChat Interpreter::run(const Block& block, DictPtr variables) {
  variables_ = std::move(variables);
  try {
    execute(block, std::make_shared<Scope>(nullptr));
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("line {}: {}", line_, e.what()));
  }
  return out_.finish_chat();
}

Value Interpreter::evaluate(const Expr& expr, const ScopePtr& scope) {
  const Nesting nesting(budget_);
  budget_.charge(1);
  line_ = expr.line;
  return expr.evaluate(*this, scope);
}

Flow Interpreter::execute(const Block& block, const ScopePtr& scope) {
  const Nesting nesting(budget_);
  for (const auto& statement : block) {
    budget_.charge(1);
    line_ = statement->line;
    const Flow flow = statement->execute(*this, scope);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

TextPtr Interpreter::capture(const Block& block, const ScopePtr& scope) {
  return capture_output([&] { execute(block, scope); });
}

Value Interpreter::lookup(std::string_view name, const ScopePtr& scope) {
  if (const Value* value = scope->find(budget_, name)) return *value;
  if (const Value* value = variables_->find(budget_, name)) return *value;
  if (const Function::Code code = find_function(name)) return Value(make<Function>(name, code));
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  auto* object = callee.object<Object>();
  if (object == nullptr || !object->callable()) {
    if (callee.is_undefined()) fail_undefined(callee);
    fail(ErrorCode::kUsage, "'{}' object is not callable", callee.type_name());
  }
  return object->call(*this, std::move(arguments));
}

Value Interpreter::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fail_undefined(object);
  if (const Method* method = find_method(object, name)) {
    if (method->code == nullptr) return Value::undefined(forbidden(object, name));
    return Value(make<Function>(method->name, method->code, object));
  }
  if (object.is<DictPtr>()) {
    if (const Value* value = object.dict().find(budget_, name)) return *value;
  } else if (auto* other = object.object<Object>()) {
    if (std::optional<Value> value = other->attribute(*this, name)) return *value;
  } else if (const auto* tuple = object.get_if<TuplePtr>();
             tuple != nullptr && (*tuple)->is_group) {
    if (name == "grouper") return (*tuple)->values[0];
    if (name == "list") return (*tuple)->values[1];
  }
  return no_attribute(object, name);
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is<DictPtr>()) {
    const bool hashable = !key.is<ListPtr>() && !key.is<DictPtr>();
    const Value* value = hashable ? object.dict().find(budget_, key) : nullptr;
    if (value != nullptr) return *value;
  } else if (key.is_integer()) {
    if (std::optional<Value> value = element(budget_, object, key.integer())) return *value;
  }
  if (key.is_text()) {
    // Entries have been searched already, so only methods and attributes are left.
    if (!object.is<DictPtr>() || find_method(object, key.text().bytes()) != nullptr) {
      return attribute(object, key.text().bytes());
    }
    return no_attribute(object, key.text().bytes());
  }
  TextBuilder shown(budget_);
  print_repr(budget_, key, shown);
  return Value::undefined(
      fmt::format("{} has no element {}", describe(object), shown.finish()->bytes()));
}

}  // namespace snapkv::jinja
