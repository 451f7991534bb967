// SPDX-License-Identifier: MIT
// Interpreter: one rendering of a template. It owns what a rendering makes (output, objects, work
// done so far) and offers what the nodes of the syntax tree, filters and functions need. Made by
// ChatTemplate::render().
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
  /// `now`: what strftime_now() shows, as local time.
  Interpreter(int64_t work, std::time_t now) : budget_(work), now_(now), out_(budget_) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// Runs a template with these variables. Throws Error{kUsage} "line N: ..." for what it may not
  /// do or refuses (raise_exception), Error{kRuntime} when it exceeds its bounds.
  RenderedChat run(const Block& block, DictPtr variables);

  Budget& budget() { return budget_; }
  std::time_t now() const { return now_; }
  TextBuilder& out() { return *current_out_; }
  /// The line that an error is reported at.
  void set_line(int line) { line_ = line; }

  Value evaluate(const Expr& expr, const ScopePtr& scope);
  Flow execute(const Block& block, const ScopePtr& scope);
  /// What a block writes, as a text.
  TextPtr capture(const Block& block, const ScopePtr& scope);
  /// What `write` writes to out(), as a text.
  template <typename Write>
  TextPtr capture_output(Write write) {
    TextBuilder text(budget_);
    const Redirection redirection(*this, text);
    write();
    return text.finish();
  }

  /// A variable: the template's, else the conversation's, else a function of the language.
  Value lookup(std::string_view name, const ScopePtr& scope);
  ScopePtr new_scope(const ScopePtr& outer) {
    budget_.charge(1);
    return std::make_shared<Scope>(outer);
  }

  /// An object that lives as long as the rendering.
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    budget_.charge(2);
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* pointer = object.get();
    objects_.push_back(std::move(object));
    return pointer;
  }

  Value call(const Value& callee, Arguments arguments);
  /// object.name: a method or attribute first, then an entry; undefined when there is neither.
  Value attribute(const Value& object, std::string_view name);
  /// object[key]: an entry first, then a method or attribute.
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
