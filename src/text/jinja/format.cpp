// SPDX-License-Identifier: MIT
#include "text/jinja/format.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/format_spec.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace snapkv::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Interpreter& in, const Text& text, const Value& argument)
      : in_(in), text_(text), argument_(argument), out_(in.budget()) {
    if (argument.is<TuplePtr>()) {
      values_ = argument.items()->values;
    } else {
      values_ = {argument};
    }
  }

  Value run() {
    const std::string& bytes = text_.bytes();
    size_t begin = 0;
    for (size_t at = bytes.find('%'); at != std::string::npos; at = bytes.find('%', begin)) {
      in_.budget().charge(1);
      out_.append(text_, begin, at);
      at_ = at + 1;
      conversion();
      begin = at_;
    }
    out_.append(text_, begin, bytes.size());
    // Values that can be read by name or by number may have more than the format uses.
    const bool may_have_more =
        argument_.is<DictPtr>() || argument_.is<ListPtr>() || argument_.is_undefined();
    if (next_ < values_.size() && !may_have_more) {
      fail(ErrorCode::kUsage, "a format has fewer places than it is given values");
    }
    return Value(out_.finish(text_.markup()));
  }

 private:
  char peek() const {
    if (at_ >= text_.bytes().size()) fail(ErrorCode::kUsage, "a format ends after '%'");
    return text_.bytes()[at_];
  }

  int64_t number() {
    if (peek() == '*') fail(ErrorCode::kUsage, "'*' in a format is not supported");
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > 1 << 20) fail(ErrorCode::kUsage, "a format is too wide");
    }
    return value;
  }

  void conversion() {
    std::optional<Value> named;
    if (peek() == '(') {
      const size_t end = text_.bytes().find(')', at_);
      if (end == std::string::npos) fail(ErrorCode::kUsage, "a format has '%(' without ')'");
      named = entry(text_.bytes().substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    }
    FormatSpec spec;
    spec.align = '>';
    bool zero = false;
    for (; std::string_view("#0- +").find(peek()) != std::string_view::npos; ++at_) {
      const char flag = peek();
      if (flag == '#') spec.alternate = true;
      if (flag == '0') zero = true;
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
    }
    spec.width = number();
    if (peek() == '.') {
      ++at_;
      spec.precision = number();
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    spec.type = peek();
    ++at_;
    if (spec.type == '%') return out_.append("%");
    if (zero && spec.align == '>') spec.align = '=';
    if (spec.align == '=') spec.fill = "0";
    append(spec, named ? *named : next_value());
  }

  Value entry(const std::string& name) {
    if (!argument_.is<DictPtr>()) fail(ErrorCode::kUsage, "a format with names needs a dict");
    next_ = values_.size();
    const Value* value = argument_.dict().find(in_.budget(), name);
    if (value == nullptr) fail(ErrorCode::kUsage, "a format names '{}', which is not there", name);
    return *value;
  }

  Value next_value() {
    if (next_ >= values_.size()) {
      fail(ErrorCode::kUsage, "a format has more places than it is given values");
    }
    return values_[next_++];
  }

  void append(FormatSpec spec, const Value& value) {
    if (spec.type == 's' || spec.type == 'r' || (spec.type == 'c' && value.is_text())) {
      TextBuilder shown(in_.budget());
      spec.type == 'r' ? print_repr(in_.budget(), value, shown) : print(in_.budget(), value, shown);
      TextPtr text = shown.finish(value.is_text() && value.text().markup());
      if (text_.markup()) text = escaped(in_.budget(), text);
      if (spec.align == '=') spec.align = '>', spec.fill = " ";
      return append_text(in_.budget(), spec, *text, out_);
    }
    if (std::string_view("diufFeEgGxXoc").find(spec.type) == std::string_view::npos) {
      fail(ErrorCode::kUsage, "unsupported format '%{}'", spec.type);
    }
    if (!value.is_number()) {
      if (value.is_undefined()) fail_undefined(value);
      fail(ErrorCode::kUsage, "%{} needs a number, not a {}", spec.type, value.type_name());
    }
    append_conversion(spec, value);
  }

  void append_conversion(FormatSpec spec, Value value) {
    const bool is_integer = std::string_view("diuxXo").find(spec.type) != std::string_view::npos;
    if (is_integer && value.is<double>()) {
      const double real = value.number();
      const bool shows = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
      if (!shows || !(std::abs(real) < 0x1p63)) {
        fail(ErrorCode::kUsage, "%{} needs an integer, not {}", spec.type, number_repr(real));
      }
      value = Value(static_cast<int64_t>(real));
    }
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    append_number(in_.budget(), spec, value.is<bool>() ? Value(value.integer()) : value, out_);
  }

  Interpreter& in_;
  const Text& text_;
  const Value& argument_;
  TextBuilder out_;
  std::vector<Value> values_;
  size_t next_ = 0;
  size_t at_ = 0;
};

class BraceFormatter {
 public:
  BraceFormatter(Interpreter& in, const Text& text, Arguments& args)
      : in_(in), text_(text), args_(args), out_(in.budget()) {}

  Value run() {
    const std::string& bytes = text_.bytes();
    size_t begin = 0;
    for (size_t at = bytes.find_first_of("{}"); at != std::string::npos;
         at = bytes.find_first_of("{}", begin)) {
      in_.budget().charge(1);
      out_.append(text_, begin, at);
      if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
        out_.append(text_, at, at + 1);
        begin = at + 2;
        continue;
      }
      const size_t end = bytes.find_first_of("{}", at + 1);
      if (bytes[at] == '}' || end == std::string::npos) {
        fail(ErrorCode::kUsage, "a format has a single '{}'", bytes[at]);
      }
      if (bytes[end] == '{') fail(ErrorCode::kUsage, "a format within a format is not supported");
      field(std::string_view(bytes).substr(at + 1, end - at - 1), end);
      begin = end + 1;
    }
    out_.append(text_, begin, bytes.size());
    return Value(out_.finish(text_.markup()));
  }

 private:
  /// Formats the field `whole`: name!conversion:spec.
  void field(std::string_view whole, size_t end) {
    const size_t colon = whole.find(':');
    const size_t spec_begin =
        colon == std::string_view::npos ? end : end - whole.size() + colon + 1;
    std::string_view name = whole.substr(0, colon);
    char conversion = 0;
    if (const size_t mark = name.find('!'); mark != std::string_view::npos) {
      if (name.size() != mark + 2) fail(ErrorCode::kUsage, "'{}' is not a format", whole);
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = find(name);
    if (conversion == 'r') {
      TextBuilder shown(in_.budget());
      print_repr(in_.budget(), value, shown);
      value = Value(shown.finish());
    } else if (conversion == 's') {
      value = Value(to_text(in_.budget(), value));
    } else if (conversion != 0) {
      fail(ErrorCode::kUsage, "unsupported conversion '!{}' in a format", conversion);
    }
    append(parse_spec(*substring(in_.budget(), text_, spec_begin, end)), value, spec_begin < end);
  }

  void append(const FormatSpec& spec, const Value& value, bool has_spec) {
    if (value.is_number() && !(value.is<bool>() && !has_spec)) {
      return append_number(in_.budget(), spec, value.is<bool>() ? Value(value.integer()) : value,
                           out_);
    }
    if (has_spec && (!value.is_text() || (spec.type != 0 && spec.type != 's'))) {
      fail(ErrorCode::kUsage, "a {} can't be formatted in this way", value.type_name());
    }
    TextPtr text = to_text(in_.budget(), value);
    if (text_.markup()) text = escaped(in_.budget(), text);
    append_text(in_.budget(), spec, *text, out_);
  }

  /// The value of a field name: first.attribute[key]...
  Value find(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, end));
    name.remove_prefix(end);
    while (!name.empty()) {
      in_.budget().charge(1);
      if (name[0] == '.') {
        const size_t stop = std::min(name.find_first_of(".[", 1), name.size());
        value = in_.attribute(value, name.substr(1, stop - 1));
        name.remove_prefix(stop);
      } else {
        const size_t stop = name.find(']');
        if (name[0] != '[' || stop == std::string_view::npos) {
          fail(ErrorCode::kUsage, "a format has '[' without ']'");
        }
        value = in_.item(value, key(name.substr(1, stop - 1)));
        name.remove_prefix(stop + 1);
      }
    }
    return value;
  }

  static std::optional<int64_t> number(std::string_view digits) {
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    int64_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    return value;
  }
  static Value key(std::string_view name) {
    if (const std::optional<int64_t> index = number(name)) return Value(*index);
    return Value::text(std::string(name));
  }

  Value argument(std::string_view name) {
    std::optional<int64_t> index = number(name);
    if (name.empty()) index = next_++;
    if (index) {
      if (*index >= std::ssize(args_.positional)) {
        fail(ErrorCode::kUsage, "a format has more places than it is given values");
      }
      return args_.positional[*index];
    }
    for (const auto& [other, value] : args_.keyword) {
      if (other == name) return value;
    }
    fail(ErrorCode::kUsage, "a format names '{}', which is not there", name);
  }

  Interpreter& in_;
  const Text& text_;
  Arguments& args_;
  TextBuilder out_;
  int64_t next_ = 0;
};

}  // namespace

Value format_percent(Interpreter& in, const Text& text, const Value& argument) {
  return PercentFormatter(in, text, argument).run();
}
Value format_braces(Interpreter& in, const Text& text, Arguments& args) {
  return BraceFormatter(in, text, args).run();
}

}  // namespace snapkv::jinja
