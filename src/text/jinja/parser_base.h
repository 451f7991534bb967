// SPDX-License-Identifier: MIT
// The common base of the parsers for expressions and statements: the stream of tokens, bounds, and
// notes on the macro that is being parsed.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace snapkv::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next_one() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }
  Token take() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_op(std::string_view op) const { return is(TokenKind::op) && current().text == op; }
  bool is_name(std::string_view name) const {
    return is(TokenKind::name) && current().text == name;
  }
  bool skip_op(std::string_view op) { return is_op(op) && (take(), true); }
  bool skip_name(std::string_view name) { return is_name(name) && (take(), true); }

  void expect_op(std::string_view op) {
    if (!skip_op(op)) fail_expected(fmt::format("'{}'", op));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail_expected(fmt::format("'{}'", name));
  }
  std::string expect_any_name(std::string_view what) {
    if (!is(TokenKind::name)) fail_expected(std::string(what));
    return take().text;
  }
  void expect(TokenKind kind, std::string_view what) {
    if (!is(kind)) fail_expected(std::string(what));
    take();
  }

  [[noreturn]] void fail_expected(const std::string& expected) const {
    fail_at(line(), fmt::format("expected {}, found {}", expected, describe(current())));
  }
  [[noreturn]] static void fail_at(int line, const std::string& what) {
    fail(ErrorCode::kUsage, "line {}: {}", line, what);
  }

 private:
  std::vector<Token> tokens_;  // the last one is TokenKind::end
  size_t at_ = 0;
};

/// Counts the nodes of a tree and bounds their number and depth.
class TreeBounds {
 public:
  /// Records that `part` belongs to `whole`.
  void contain(Node& whole, const Node* part) {
    if (part == nullptr) return;
    whole.depth = std::max(whole.depth, part->depth + 1);
    if (whole.depth > kMaxDepth) too_deep(whole.line);
  }
  void contain(Node& whole, const Block& block) {
    for (const auto& statement : block) contain(whole, statement.get());
  }
  template <typename T, typename... Args>
  std::unique_ptr<T> make(int line, Args&&... args) {
    if (++n_nodes_ > kMaxNodes) {
      TokenStream::fail_at(line, fmt::format("the template has more than {} parts", kMaxNodes));
    }
    return std::make_unique<T>(line, std::forward<Args>(args)...);
  }

  /// Counts one more level of the parser's own recursion for as long as it lives.
  class Level {
   public:
    Level(TreeBounds& bounds, int line) : bounds_(bounds) {
      if (++bounds_.level_ > kMaxDepth) too_deep(line);
    }
    ~Level() { --bounds_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TreeBounds& bounds_;
  };

 private:
  static constexpr int kMaxDepth = 150;
  static constexpr int kMaxNodes = 200000;
  [[noreturn]] static void too_deep(int line) {
    TokenStream::fail_at(line, fmt::format("nested more than {} levels deep", kMaxDepth));
  }

  int n_nodes_ = 0;
  int level_ = 0;
};

/// Which of `caller`, `varargs` and `kwargs` a macro's body reads before setting them: a macro only
/// takes these arguments if its body reads them.
struct MacroNotes {
  struct Use {
    bool read = false;
    bool set = false;
  };
  Use caller, varargs, kwargs;
  Use* find(std::string_view name) {
    if (name == "caller") return &caller;
    if (name == "varargs") return &varargs;
    return name == "kwargs" ? &kwargs : nullptr;
  }
};

/// Parses expressions; the parser of statements derives from it.
class ExpressionParser {
 protected:
  explicit ExpressionParser(std::vector<Token> tokens) : stream_(std::move(tokens)) {}

  ExprPtr parse_expression(bool with_condition = true);
  /// a, b, c: a tuple, or a single expression. `end`: a name that ends the list, even
  /// after a comma.
  ExprPtr parse_tuple(bool with_condition = true, std::string_view end = "");
  /// name(...) | name ...; if `inline_first`, the first `|` is optional. Returns null if there is
  /// no filter and `operand` is null.
  ExprPtr parse_filters(ExprPtr operand, bool inline_first = false);
  void note_read(std::string_view name);
  void note_set(std::string_view name);

  TokenStream stream_;
  TreeBounds bounds_;
  std::vector<MacroNotes> macros_;  // the macros being parsed, the innermost last
  int conditions_ = 0;              // how many conditions the current part depends on

 private:
  template <typename T>
  ExprPtr parse_chain(ExprPtr (ExpressionParser::*operand)(),
                      std::initializer_list<std::string_view> ops, TokenKind kind);
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_comparison();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary_with_filters();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_number();
  ExprPtr parse_parentheses();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr node);
  ExprPtr parse_attribute(ExprPtr node);
  ExprPtr parse_subscript(ExprPtr node);
  ExprPtr parse_call(ExprPtr node);
  ExprPtr parse_filters_and_tests(ExprPtr node);
  ExprPtr parse_test(ExprPtr node);
  CallArguments parse_arguments(Node& node);
  bool at_tuple_end(std::string_view end) const;
  /// Adds a part to a node and checks the bounds.
  ExprPtr within(Node& node, ExprPtr part) {
    bounds_.contain(node, part.get());
    return part;
  }
};

}  // namespace snapkv::jinja
