// SPDX-License-Identifier: MIT
#include "text/jinja/macro.h"

#include "text/jinja/operators.h"

namespace snapkv::jinja {

void MacroObject::print(Budget&, TextBuilder& out) const {
  out.append(definition_.name.empty() ? "<Macro anonymous>"
                                      : fmt::format("<Macro '{}'>", definition_.name));
}

std::optional<Value> MacroObject::attribute(Interpreter&, std::string_view name) {
  if (name == "name") return Value::text(definition_.name);
  if (name == "catch_varargs") return Value(definition_.uses_varargs);
  if (name == "catch_kwargs") return Value(definition_.uses_kwargs);
  if (name == "caller") return Value(definition_.uses_caller);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const std::string& parameter : definition_.parameters) {
    names.push_back(Value::text(parameter));
  }
  return Value::tuple(std::move(names));
}

void MacroObject::bind(Interpreter& in, const ScopePtr& scope, Arguments args) const {
  const std::vector<std::string>& parameters = definition_.parameters;
  const size_t n_given = std::min(args.positional.size(), parameters.size());
  const size_t first_default = parameters.size() - definition_.defaults.size();
  std::vector<bool> missing(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    Value value = Value::undefined(fmt::format("parameter '{}' was not provided", parameters[i]));
    if (i < n_given) {
      value = args.positional[i];
    } else if (std::optional<Value> named = args.take(parameters[i])) {
      value = std::move(*named);
    } else {
      missing[i] = true;
    }
    scope->set(in.budget(), parameters[i], std::move(value));
  }
  if (definition_.uses_caller) {
    scope->set(in.budget(), "caller",
               args.take("caller").value_or(Value::undefined("no caller is defined")));
  }
  if (definition_.uses_kwargs) {
    auto rest = std::make_shared<Dict>();
    for (auto& [name, value] : args.keyword) {
      rest->set(in.budget(), Value::text(name), std::move(value));
    }
    scope->set(in.budget(), "kwargs", Value(DictPtr(std::move(rest))));
  } else if (!args.keyword.empty()) {
    fail(ErrorCode::kUsage, "macro '{}' takes no argument named '{}'", definition_.name,
         args.keyword.front().first);
  }
  if (definition_.uses_varargs) {
    const auto rest = args.positional.begin() + static_cast<std::ptrdiff_t>(n_given);
    scope->set(in.budget(), "varargs", Value::tuple({rest, args.positional.end()}));
  } else if (args.positional.size() > parameters.size()) {
    fail(ErrorCode::kUsage, "macro '{}' takes no more than {} arguments, not {}", definition_.name,
         parameters.size(), args.positional.size());
  }
  for (size_t i = first_default; i < parameters.size(); ++i) {
    if (!missing[i]) continue;
    scope->set(in.budget(), parameters[i],
               in.evaluate(*definition_.defaults[i - first_default], scope));
  }
}

Value MacroObject::call(Interpreter& in, Arguments args) {
  const ScopePtr scope = in.new_scope(around_);
  bind(in, scope, std::move(args));
  return Value(in.capture(definition_.body, scope));
}

Flow Macro::execute(Interpreter& in, const ScopePtr& scope) const {
  scope->set(in.budget(), definition.name, Value(in.make<MacroObject>(definition, scope)));
  return Flow::next;
}

Flow CallBlock::execute(Interpreter& in, const ScopePtr& scope) const {
  const Value caller(in.make<MacroObject>(definition, scope));
  const Value result = call->evaluate_with_caller(in, scope, caller);
  in.set_line(line);
  print(in.budget(), result, in.out());
  return Flow::next;
}

}  // namespace snapkv::jinja
