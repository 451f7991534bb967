// SPDX-License-Identifier: MIT
// The parser of statements.
#include "text/jinja/parser.h"

#include "base/check.h"
#include "text/jinja/parser_base.h"

namespace snapkv::jinja {
namespace {

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  Block run() {
    Block block = parse_until({});
    SNAPKV_CHECK(stream_.is(TokenKind::end));
    return block;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // A body that is compiled on its own: unknown filters in it are errors even inside a condition.
  class OwnBody {
   public:
    explicit OwnBody(int& conditions) : conditions_(conditions), outer_(conditions) {
      conditions_ = 0;
    }
    ~OwnBody() { conditions_ = outer_; }
    OwnBody(const OwnBody&) = delete;
    OwnBody& operator=(const OwnBody&) = delete;

   private:
    int& conditions_;
    int outer_;
  };

  /// Parses statements up to one of the tags `ends`, whose name is then the current token. Without
  /// `ends`, parses to the end of the template. `line`: where the block begins.
  Block parse_until(Names ends, int line = 0) {
    Block block;
    while (!stream_.is(TokenKind::end)) {
      const int at = stream_.line();
      if (stream_.is(TokenKind::data)) {
        block.push_back(bounds_.make<Data>(at, stream_.take().text));
      } else if (stream_.is(TokenKind::variable_begin)) {
        block.push_back(parse_output());
      } else {
        stream_.expect(TokenKind::block_begin, "a tag");
        for (const std::string_view end : ends) {
          if (stream_.is_name(end)) return block;
        }
        parse_statement(ends, block);
        stream_.expect(TokenKind::block_end, "'%}'");
      }
    }
    if (ends.size() == 0) return block;
    stream_.fail_at(
        line, fmt::format("the block that begins here has no '{{% {} %}}'", *(ends.end() - 1)));
  }

  /// Parses the rest of an opening tag and the body after it, up to one of `ends`.
  Block parse_body(Node& node, Names ends) {
    const TreeBounds::Level level(bounds_, stream_.line());
    stream_.skip_op(":");
    stream_.expect(TokenKind::block_end, "'%}'");
    Block block = parse_until(ends, node.line);
    bounds_.contain(node, block);
    return block;
  }
  Block parse_whole_body(Node& node, std::string_view end) {
    Block block = parse_body(node, {end});
    stream_.take();
    return block;
  }

  std::unique_ptr<const Statement> parse_output() {
    auto output = bounds_.make<Output>(stream_.take().line);
    output->value = parse_tuple();
    bounds_.contain(*output, output->value.get());
    stream_.expect(TokenKind::variable_end, "'}}'");
    return output;
  }

  void parse_statement(Names ends, Block& block) {
    const Token tag = stream_.current();
    if (tag.kind != TokenKind::name) stream_.fail_expected("the name of a statement");
    stream_.take();
    const int line = tag.line;
    if (tag.text == "if") return block.push_back(parse_if(line));
    if (tag.text == "for") return block.push_back(parse_for(line));
    if (tag.text == "set") return block.push_back(parse_set(line));
    if (tag.text == "macro") return block.push_back(parse_macro(line));
    if (tag.text == "call") return block.push_back(parse_call_block(line));
    if (tag.text == "filter") return block.push_back(parse_filter_block(line));
    if (tag.text == "with") return block.push_back(parse_with(line));
    if (tag.text == "generation") return block.push_back(parse_generation(line));
    if (tag.text == "print") return parse_print(line, block);
    if (tag.text == "break" || tag.text == "continue") {
      if (loops_ == 0) stream_.fail_at(line, fmt::format("'{}' outside of a loop", tag.text));
      const Flow flow = tag.text == "break" ? Flow::break_loop : Flow::continue_loop;
      return block.push_back(bounds_.make<Jump>(line, flow));
    }
    fail_unknown(tag, ends);
  }

  [[noreturn]] static void fail_unknown(const Token& tag, Names ends) {
    constexpr std::string_view kUnsupported[] = {"extends",    "block", "include", "import", "from",
                                                 "autoescape", "do",    "trans",   "debug"};
    for (const std::string_view name : kUnsupported) {
      if (tag.text == name) {
        TokenStream::fail_at(tag.line, fmt::format("the statement '{}' is not supported", name));
      }
    }
    std::string expected;
    for (const std::string_view end : ends) {
      expected += fmt::format("{}'{}'", expected.empty() ? ", expected " : " or ", end);
    }
    TokenStream::fail_at(tag.line, fmt::format("unknown statement '{}'{}", tag.text, expected));
  }

  std::unique_ptr<const Statement> parse_if(int line) {
    auto node = bounds_.make<If>(line);
    ++conditions_;
    while (true) {
      ExprPtr test = parse_tuple(false);
      bounds_.contain(*node, test.get());
      Block body = parse_body(*node, {"elif", "else", "endif"});
      node->branches.emplace_back(std::move(test), std::move(body));
      if (stream_.skip_name("elif")) continue;
      if (stream_.skip_name("else")) {
        node->otherwise = parse_whole_body(*node, "endif");
      } else {
        stream_.take();
      }
      break;
    }
    --conditions_;
    return node;
  }

  std::unique_ptr<const Statement> parse_for(int line) {
    auto node = bounds_.make<For>(line);
    node->target = parse_target("in", false);
    note_target(node->target);
    stream_.expect_name("in");
    node->iterable = parse_tuple(false, "recursive");
    bounds_.contain(*node, node->iterable.get());
    const OwnBody own(conditions_);
    if (stream_.skip_name("if")) {
      node->test = parse_expression();
      bounds_.contain(*node, node->test.get());
    }
    node->recursive = stream_.skip_name("recursive");
    ++loops_;
    node->body = parse_body(*node, {"else", "endfor"});
    --loops_;
    if (stream_.skip_name("else")) {
      node->otherwise = parse_whole_body(*node, "endfor");
    } else {
      stream_.take();
    }
    return node;
  }

  std::unique_ptr<const Statement> parse_set(int line) {
    Target target = parse_target("", true);
    note_target(target);
    if (stream_.skip_op("=")) {
      auto node = bounds_.make<Set>(line);
      node->value = parse_tuple();
      bounds_.contain(*node, node->value.get());
      node->target = std::move(target);
      return node;
    }
    auto node = bounds_.make<SetBlock>(line);
    if (stream_.is_op("|")) {
      node->filters = parse_filters(bounds_.make<Name>(line, std::string(kBodyName)));
      bounds_.contain(*node, node->filters.get());
    }
    const OwnBody own(conditions_);
    node->body = parse_whole_body(*node, "endset");
    node->target = std::move(target);
    return node;
  }

  std::unique_ptr<const Statement> parse_filter_block(int line) {
    auto node = bounds_.make<FilterBlock>(line);
    node->filters = parse_filters(bounds_.make<Name>(line, std::string(kBodyName)), true);
    bounds_.contain(*node, node->filters.get());
    const OwnBody own(conditions_);
    node->body = parse_whole_body(*node, "endfilter");
    return node;
  }

  std::unique_ptr<const Statement> parse_with(int line) {
    auto node = bounds_.make<With>(line);
    while (!stream_.is(TokenKind::block_end)) {
      if (!node->values.empty()) stream_.expect_op(",");
      Target target = parse_target("", false);
      note_target(target);
      stream_.expect_op("=");
      ExprPtr value = parse_expression();
      bounds_.contain(*node, value.get());
      node->values.emplace_back(std::move(target), std::move(value));
    }
    const OwnBody own(conditions_);
    node->body = parse_whole_body(*node, "endwith");
    return node;
  }

  std::unique_ptr<const Statement> parse_generation(int line) {
    auto node = bounds_.make<GenerationBlock>(line);
    const OwnBody own(conditions_);
    const int loops = std::exchange(loops_, 0);  // transformers makes the body a function
    node->body = parse_whole_body(*node, "endgeneration");
    loops_ = loops;
    return node;
  }

  void parse_print(int line, Block& block) {
    bool is_first = true;
    while (!stream_.is(TokenKind::block_end)) {
      if (!is_first) stream_.expect_op(",");
      is_first = false;
      auto output = bounds_.make<Output>(line);
      output->value = parse_expression();
      bounds_.contain(*output, output->value.get());
      block.push_back(std::move(output));
    }
  }

  std::unique_ptr<const Statement> parse_macro(int line) {
    auto node = bounds_.make<Macro>(line);
    node->definition.name = stream_.expect_any_name("the macro's name");
    macros_.emplace_back();
    parse_signature(*node, node->definition);
    parse_macro_body(*node, node->definition, "endmacro");
    return node;
  }

  std::unique_ptr<const Statement> parse_call_block(int line) {
    auto node = bounds_.make<CallBlock>(line);
    macros_.emplace_back();
    if (stream_.is_op("(")) parse_signature(*node, node->definition);
    MacroNotes notes = std::move(macros_.back());  // the call is not part of the body
    macros_.pop_back();
    ExprPtr call = parse_expression();
    if (dynamic_cast<const Call*>(call.get()) == nullptr) {
      stream_.fail_at(line, "'call' needs a call: {% call name(...) %}");
    }
    bounds_.contain(*node, call.get());
    node->call.reset(static_cast<const Call*>(call.release()));
    macros_.push_back(std::move(notes));
    parse_macro_body(*node, node->definition, "endcall");
    return node;
  }

  void parse_signature(Node& node, MacroDefinition& definition) {
    stream_.expect_op("(");
    while (!stream_.is_op(")")) {
      if (!definition.parameters.empty()) stream_.expect_op(",");
      const int line = stream_.line();
      std::string name = stream_.expect_any_name("the name of a parameter");
      const auto& known = definition.parameters;
      if (std::find(known.begin(), known.end(), name) != known.end()) {
        stream_.fail_at(line, fmt::format("parameter '{}' is there twice", name));
      }
      if (stream_.skip_op("=")) {
        definition.defaults.push_back(parse_expression());
        bounds_.contain(node, definition.defaults.back().get());
      } else if (!definition.defaults.empty()) {
        stream_.fail_at(line, fmt::format("parameter '{}' has no default, but the one before it "
                                          "has one",
                                          name));
      }
      note_set(name);
      definition.parameters.push_back(std::move(name));
    }
    stream_.take();
    // Reads in the defaults do not count as reads of the body; parameters count as set.
    macros_.back() = {};
    for (const std::string& name : definition.parameters) {
      if (MacroNotes::Use* use = macros_.back().find(name)) use->set = true;
    }
  }

  void parse_macro_body(Node& node, MacroDefinition& definition, std::string_view end) {
    const OwnBody own(conditions_);
    const int loops = std::exchange(loops_, 0);
    definition.body = parse_whole_body(node, end);
    loops_ = loops;
    const MacroNotes& notes = macros_.back();
    definition.uses_caller = notes.caller.read;
    definition.uses_varargs = notes.varargs.read;
    definition.uses_kwargs = notes.kwargs.read;
    macros_.pop_back();
  }

  /// a, (b, c), d.e. `end`: a name that may follow the last comma.
  Target parse_target(std::string_view end, bool with_namespace) {
    Target first = parse_one_target(with_namespace);
    if (!stream_.is_op(",")) return first;
    Target tuple;
    tuple.is_tuple = true;
    tuple.parts.push_back(std::move(first));
    while (stream_.skip_op(",")) {
      if (stream_.is_op(")") || (!end.empty() && stream_.is_name(end))) break;
      tuple.parts.push_back(parse_one_target(with_namespace));
    }
    return tuple;
  }

  Target parse_one_target(bool with_namespace) {
    const TreeBounds::Level level(bounds_, stream_.line());
    if (stream_.skip_op("(")) {
      Target target = parse_target("", with_namespace);
      stream_.expect_op(")");
      return target;
    }
    const int line = stream_.line();
    Target target;
    target.name = stream_.expect_any_name("a name to assign to");
    if (with_namespace && stream_.skip_op(".")) {
      target.attribute = stream_.expect_any_name("the attribute of a namespace");
    }
    constexpr std::string_view kConstants[] = {"true", "True", "false", "False", "none", "None"};
    for (const std::string_view constant : kConstants) {
      if (target.name == constant) {
        stream_.fail_at(line, fmt::format("can't assign to '{}'", constant));
      }
    }
    return target;
  }

  void note_target(const Target& target) {
    for (const Target& part : target.parts) note_target(part);
    if (!target.is_tuple && target.attribute.empty()) note_set(target.name);
  }

  int loops_ = 0;  // the loops around the current part, up to the macro that it is in
};

}  // namespace

Block parse(std::string_view source) { return Parser(tokenize(source)).run(); }

}  // namespace snapkv::jinja
