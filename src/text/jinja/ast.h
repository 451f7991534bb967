// SPDX-License-Identifier: MIT
// The syntax tree of a template. Nodes can evaluate or execute themselves. The parser makes them,
// and after that they never change, so several renderings may share a tree. Recursion over a tree
// is safe: its depth is bounded, and a chain (a + b + c, a.b.c) is one node.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/scope.h"
#include "text/jinja/value.h"

namespace snapkv::jinja {

class Interpreter;
struct Arguments;

/// A part of the tree; `depth` is 1 + the depth of its deepest part.
struct Node {
  explicit Node(int at_line) : line(at_line) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  int line;
  int depth = 1;
};

struct Expr : Node {
  using Node::Node;
  virtual Value evaluate(Interpreter& in, const ScopePtr& scope) const = 0;
};
using ExprPtr = std::unique_ptr<const Expr>;

/// How a statement ended: `break` and `continue` are passed up to their loop.
enum class Flow { next, break_loop, continue_loop };

struct Statement : Node {
  using Node::Node;
  virtual Flow execute(Interpreter& in, const ScopePtr& scope) const = 0;
};
using Block = std::vector<std::unique_ptr<const Statement>>;

// ---------------------------------------------------------------- expressions

struct Literal final : Expr {
  Literal(int at_line, Value v) : Expr(at_line), value(std::move(v)) {}
  Value evaluate(Interpreter&, const ScopePtr&) const override { return value; }
  Value value;
};

struct Name final : Expr {
  Name(int at_line, std::string n) : Expr(at_line), name(std::move(n)) {}
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  std::string name;
};

/// [a, b] or (a, b)
struct Sequence final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  bool is_tuple = false;
  std::vector<ExprPtr> values;
};

/// {a: b}
struct Mapping final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

/// object.name
struct Attribute final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr object;
  std::string name;
};

/// object[key]
struct Subscript final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr object;
  ExprPtr key;
};

/// object[start:stop:step]; missing parts are null.
struct Slice final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr object;
  ExprPtr start, stop, step;
};

/// (a, b=c, *d, **e)
struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr star;         // or null
  ExprPtr double_star;  // or null
  Arguments evaluate(Interpreter& in, const ScopePtr& scope) const;
};

struct Call final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  /// The same with one more keyword argument, `caller`, if that is defined.
  Value evaluate_with_caller(Interpreter& in, const ScopePtr& scope, const Value& caller) const;
  ExprPtr callee;
  CallArguments arguments;
};

/// operand | name(arguments)
struct Filter final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr operand;
  std::string name;
  CallArguments arguments;
};

/// operand is name(arguments)
struct Test final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr operand;
  std::string name;
  CallArguments arguments;
};

/// -a, +a, not a
struct Unary final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  std::string op;
  ExprPtr operand;
};

/// first op operand op operand ..., evaluated from left to right; the operators have the same
/// precedence: a + b - c
struct Chain : Expr {
  using Expr::Expr;
  ExprPtr first;
  std::vector<std::pair<std::string, ExprPtr>> rest;
};
struct Arithmetic final : Chain {
  using Chain::Chain;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
};
/// a < b <= c, which is a < b and b <= c
struct Comparison final : Chain {
  using Chain::Chain;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
};
/// a and b and c; a or b or c
struct Logic final : Chain {
  using Chain::Chain;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
};
/// a ~ b ~ c
struct Concat final : Chain {
  using Chain::Chain;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
};

/// value if test else otherwise; `otherwise` may be null
struct Conditional final : Expr {
  using Expr::Expr;
  Value evaluate(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr test, value, otherwise;
};

// ---------------------------------------------------------------- statements

/// The text between tags.
struct Data final : Statement {
  Data(int at_line, std::string t) : Statement(at_line), text(std::move(t)) {}
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  std::string text;
};

/// {{ value }}
struct Output final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr value;
};

/// The left side of `set`, `for` and `with`: a name, namespace.attribute, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;
  bool is_tuple = false;
  std::vector<Target> parts;
  void assign(Interpreter& in, const ScopePtr& scope, const Value& value) const;
};

struct If final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  std::vector<std::pair<ExprPtr, Block>> branches;  // if, elif
  Block otherwise;
};

struct For final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  /// Runs the loop over `iterable`; `depth` is how often the loop has called itself, from 0.
  Flow run(Interpreter& in, const ScopePtr& scope, const Value& iterable, int64_t depth) const;
  Target target;
  ExprPtr iterable;
  ExprPtr test;  // or null
  bool recursive = false;
  Block body, otherwise;
};

struct Set final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  Target target;
  ExprPtr value;
};

/// The name under which filters are applied to the text that a statement's body writes.
constexpr std::string_view kBodyName = " body";

/// {% set target | filters %}body{% endset %}
struct SetBlock final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  Target target;
  ExprPtr filters;  // applied to kBodyName, or null
  Block body;
};

/// {% filter filters %}body{% endfilter %}
struct FilterBlock final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  ExprPtr filters;  // applied to kBodyName
  Block body;
};

/// The parameters and body of a macro, or of the `caller` that a `call` block passes.
struct MacroDefinition {
  std::string name;  // empty for a call block
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // for the last parameters
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Macro final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  MacroDefinition definition;
};

/// {% call(parameters) function() %}body{% endcall %}
struct CallBlock final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  MacroDefinition definition;
  std::unique_ptr<const Call> call;
};

struct With final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  std::vector<std::pair<Target, ExprPtr>> values;
  Block body;
};

/// {% generation %}body{% endgeneration %}: transformers' mark of the text that a model writes
struct GenerationBlock final : Statement {
  using Statement::Statement;
  Flow execute(Interpreter& in, const ScopePtr& scope) const override;
  Block body;
};

struct Jump final : Statement {
  Jump(int at_line, Flow f) : Statement(at_line), flow(f) {}
  Flow execute(Interpreter&, const ScopePtr&) const override { return flow; }
  Flow flow;
};

}  // namespace snapkv::jinja
