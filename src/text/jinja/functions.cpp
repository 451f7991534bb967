// SPDX-License-Identifier: MIT
#include "text/jinja/functions.h"

#include "text/jinja/arguments.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/strftime.h"

namespace snapkv::jinja {
namespace {

/// joiner(): prints nothing at its first call and the separator at all others.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  void print(Budget&, TextBuilder&) const override {
    fail(ErrorCode::kUsage, "a joiner can't be printed: call it with ()");
  }
  bool callable() const override { return true; }
  Value call(Interpreter&, Arguments args) override {
    bind_none("a joiner", args);
    return std::exchange(used_, true) ? separator_ : Value::text("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

/// cycler(a, b): next() returns the values in turn.
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> values) : values_(std::move(values)) {}
  std::string_view type_name() const override { return "Cycler"; }
  void print(Budget&, TextBuilder&) const override {
    fail(ErrorCode::kUsage, "a cycler can't be printed: use its next() or current");
  }
  std::optional<Value> attribute(Interpreter& in, std::string_view name) override {
    if (name == "current") return values_[at_];
    if (name == "next") return Value(in.make<Function>("next", &next, Value(this)));
    if (name == "reset") return Value(in.make<Function>("reset", &reset, Value(this)));
    return std::nullopt;
  }

 private:
  static Value next(Interpreter&, const Value& self, Arguments& args) {
    bind_none("next()", args);
    auto* cycler = self.object<Cycler>();
    Value value = cycler->values_[cycler->at_];
    cycler->at_ = (cycler->at_ + 1) % cycler->values_.size();
    return value;
  }
  static Value reset(Interpreter&, const Value& self, Arguments& args) {
    bind_none("reset()", args);
    self.object<Cycler>()->at_ = 0;
    return Value(None());
  }

  std::vector<Value> values_;
  size_t at_ = 0;
};

Value range(Interpreter& in, const Value&, Arguments& args) {
  if (!args.keyword.empty() || args.positional.empty() || args.positional.size() > 3) {
    fail(ErrorCode::kUsage, "range() takes one to three integers");
  }
  int64_t parts[3] = {0, 0, 1};
  for (size_t i = 0; i < args.positional.size(); ++i) {
    parts[i] = integer_argument("range()", "its numbers", args.positional[i], 0);
  }
  if (args.positional.size() == 1) std::swap(parts[0], parts[1]);
  if (parts[2] == 0) fail(ErrorCode::kUsage, "the step of range() can't be zero");
  return Value(in.make<Range>(parts[0], parts[1], parts[2]));
}

/// The entries that dict() and namespace() make from their arguments.
Dict make_dict(Interpreter& in, std::string_view callee, Arguments& args) {
  if (args.positional.size() > 1) {
    fail(ErrorCode::kUsage, "{} takes no more than one positional argument", callee);
  }
  Dict dict;
  if (!args.positional.empty()) {
    const Value& source = args.positional.front();
    if (source.is<DictPtr>()) {
      in.budget().charge(source.dict().size());
      dict = source.dict();
    } else {
      for (const Value& pair : items_of(in, source)) {
        const std::vector<Value> parts = items_of(in, pair);
        if (parts.size() != 2) fail(ErrorCode::kUsage, "{} needs pairs of key and value", callee);
        dict.set(in.budget(), parts[0], parts[1]);
      }
    }
  }
  for (auto& [name, value] : args.keyword) {
    dict.set(in.budget(), Value::text(name), std::move(value));
  }
  return dict;
}

Value dict(Interpreter& in, const Value&, Arguments& args) {
  return Value(std::make_shared<const Dict>(make_dict(in, "dict()", args)));
}

Value make_namespace(Interpreter& in, const Value&, Arguments& args) {
  return Value(in.make<Namespace>(make_dict(in, "namespace()", args)));
}

Value joiner(Interpreter& in, const Value&, Arguments& args) {
  auto [sep] = bind("joiner()", {"sep"}, 0, args);
  return Value(in.make<Joiner>(sep.value_or(Value::text(", "))));
}

Value cycler(Interpreter& in, const Value&, Arguments& args) {
  if (args.positional.empty() || !args.keyword.empty()) {
    fail(ErrorCode::kUsage, "cycler() needs values to choose from");
  }
  return Value(in.make<Cycler>(std::move(args.positional)));
}

Value raise_exception(Interpreter& in, const Value&, Arguments& args) {
  const auto [message] = bind("raise_exception()", {"message"}, 1, args);
  fail(ErrorCode::kUsage, "the chat template refuses the conversation: {}",
       to_text(in.budget(), *message)->bytes());
}

Value strftime_now(Interpreter& in, const Value&, Arguments& args) {
  const auto [format] = bind("strftime_now()", {"format"}, 1, args);
  const TextPtr text = text_argument("strftime_now()", "format", *format);
  in.budget().charge(std::ssize(text->bytes()));
  return Value::text(format_time(text->bytes(), in.now()));
}

}  // namespace

Function::Code find_function(std::string_view name) {
  if (name == "range") return &range;
  if (name == "dict") return &dict;
  if (name == "namespace") return &make_namespace;
  if (name == "joiner") return &joiner;
  if (name == "cycler") return &cycler;
  if (name == "raise_exception") return &raise_exception;
  return name == "strftime_now" ? &strftime_now : nullptr;
}

}  // namespace snapkv::jinja
