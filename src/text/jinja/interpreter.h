// SPDX-License-Identifier: MIT
// Interpreter: one rendering of a template. It owns what the rendering makes (output, objects, the
// count of work done) and offers what the nodes of the syntax tree, filters and functions need.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/budget.h"
#include "text/jinja/object.h"
#include "text/jinja/scope.h"

namespace snapkv::jinja {

class Interpreter {
 public:
  /// `now`: the time that strftime_now() shows, as local time.
  Interpreter(int64_t work, std::time_t now) : budget_(work), now_(now), out_(budget_) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Runs a template with these variables. Throws Error{kUsage} "line N: ..." if the template does
  /// something invalid or calls raise_exception, and Error{kRuntime} if it exceeds its bounds.
  RenderedChat run(const Block& block, DictPtr variables);

  Budget& budget() { return budget_; }
  std::time_t now() const { return now_; }
  TextBuilder& out() { return *current_out_; }
  /// Sets the line that errors are reported at.
  void set_line(int line) { line_ = line; }

  Value evaluate(const Expr& expr, const ScopePtr& scope);
  Flow execute(const Block& block, const ScopePtr& scope);
  /// The output of a block, as a text.
  TextPtr capture(const Block& block, const ScopePtr& scope);
  /// The text that `write` writes to out().
  template <typename Write>
  TextPtr capture_output(Write write) {
    TextBuilder text(budget_);
    const Redirection redirection(*this, text);
    write();
    return text.finish();
  }

  /// A variable of the template, else of the conversation, else a function of the language.
  Value lookup(std::string_view name, const ScopePtr& scope);
  ScopePtr new_scope(const ScopePtr& outer) {
    budget_.charge(1);
    return std::make_shared<Scope>(outer);
  }

  /// Makes an object that lives as long as the rendering.
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    budget_.charge(2);
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* pointer = object.get();
    objects_.push_back(std::move(object));
    return pointer;
  }

  Value call(const Value& callee, Arguments arguments);
  /// object.name: a method or attribute, else an entry, else undefined.
  Value attribute(const Value& object, std::string_view name);
  /// object[key]: an entry, else a method or attribute.
  Value item(const Value& object, const Value& key);

 private:
  class Redirection {
   public:
    Redirection(Interpreter& in, TextBuilder& out) : in_(in), outer_(in.current_out_) {
      in_.current_out_ = &out;
    }
    ~Redirection() { in_.current_out_ = outer_; }
    Redirection(const Redirection&) = delete;
    Redirection& operator=(const Redirection&) = delete;

   private:
    Interpreter& in_;
    TextBuilder* outer_;
  };

  Budget budget_;
  std::time_t now_;
  int line_ = 1;
  TextBuilder out_;
  TextBuilder* current_out_ = &out_;
  DictPtr variables_;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace snapkv::jinja
