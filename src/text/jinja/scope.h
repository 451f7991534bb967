// SPDX-License-Identifier: MIT
// Scope: the variables that a part of a template has set, and the scope around it. Loops, macros
// and blocks have their own scope; `if` has none.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace snapkv::jinja {

class Scope;
using ScopePtr = std::shared_ptr<Scope>;

class Scope {
 public:
  explicit Scope(ScopePtr outer) : outer_(std::move(outer)) {}

  /// The value in this scope or one around it; nullptr if the template has not set the variable.
  const Value* find(Budget& budget, std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_.get()) {
      budget.charge(static_cast<int64_t>(scope->values_.size()) / 16);
      for (const auto& [other, value] : scope->values_) {
        if (other == name) return &value;
      }
    }
    return nullptr;
  }

  /// `name` must outlive the scope; names belong to the syntax tree.
  void set(Budget& budget, std::string_view name, Value value) {
    budget.charge(static_cast<int64_t>(values_.size()) / 16);
    for (auto& [other, old] : values_) {
      if (other != name) continue;
      old = std::move(value);
      return;
    }
    values_.emplace_back(name, std::move(value));
  }

 private:
  ScopePtr outer_;
  std::vector<std::pair<std::string_view, Value>> values_;
};

}  // namespace snapkv::jinja
