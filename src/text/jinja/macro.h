// SPDX-License-Identifier: MIT
// MacroObject: a macro or the `caller` of a call block, with the variables around its definition.
#pragma once

#include "text/jinja/interpreter.h"

namespace snapkv::jinja {

class MacroObject final : public Object {
 public:
  MacroObject(const MacroDefinition& definition, ScopePtr around)
      : definition_(definition), around_(std::move(around)) {}
  std::string_view type_name() const override { return "Macro"; }
  void print(Budget& budget, TextBuilder& out) const override;
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Interpreter& in, Arguments args) override;

 private:
  void bind(Interpreter& in, const ScopePtr& scope, Arguments args) const;

  const MacroDefinition& definition_;
  ScopePtr around_;
};

}  // namespace snapkv::jinja
