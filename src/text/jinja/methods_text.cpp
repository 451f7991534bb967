// SPDX-License-Identifier: MIT
// Methods of texts: those of Python's str.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "text/jinja/arguments.h"
#include "text/jinja/format.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"

namespace snapkv::jinja {
namespace {

using Change = TextPtr (*)(Budget&, const Text&);
template <Change change>
Value changed_self(Interpreter& in, const Value& self, Arguments& args) {
  bind_none("a str method that changes the case", args);
  return Value(change(in.budget(), self.text()));
}

template <Side side>
Value strip_method(Interpreter& in, const Value& self, Arguments& args) {
  const auto [chars] = bind("strip()", {"chars"}, 0, args);
  const TextPtr set = optional_text("strip()", "chars", chars);
  return Value(strip(in.budget(), self.text(), set.get(), side));
}

Value list_of(Budget& budget, const std::vector<TextPtr>& texts) {
  std::vector<Value> values;
  budget.charge(std::ssize(texts));
  for (const TextPtr& text : texts) values.emplace_back(text);
  return Value::list(std::move(values));
}

template <bool from_right>
Value split_method(Interpreter& in, const Value& self, Arguments& args) {
  const auto [sep, maxsplit] = bind("split()", {"sep", "maxsplit"}, 0, args);
  const TextPtr separator = optional_text("split()", "sep", sep);
  const int64_t limit = integer_argument("split()", "maxsplit", maxsplit, -1);
  return list_of(in.budget(), split(in.budget(), self.text(), separator.get(), limit, from_right));
}

Value splitlines(Interpreter& in, const Value& self, Arguments& args) {
  const auto [keepends] = bind("splitlines()", {"keepends"}, 0, args);
  return list_of(in.budget(), split_lines(in.budget(), self.text(), flag_argument(keepends)));
}

template <bool from_right>
Value partition(Interpreter& in, const Value& self, Arguments& args) {
  const auto [sep] = bind("partition()", {"sep"}, 1, args);
  const TextPtr separator = text_argument("partition()", "sep", *sep);
  const std::vector<TextPtr> parts =
      split(in.budget(), self.text(), separator.get(), 1, from_right);
  const TextPtr empty = make_text("");
  if (parts.size() == 2) {
    return Value::tuple({Value(parts[0]), Value(separator), Value(parts[1])});
  }
  if (from_right) return Value::tuple({Value(empty), Value(empty), self});
  return Value::tuple({self, Value(empty), Value(empty)});
}

Value replace_method(Interpreter& in, const Value& self, Arguments& args) {
  const auto [old, replacement, count] = bind("replace()", {"old", "new", "count"}, 2, args);
  return Value(replace(in.budget(), self.text(), *text_argument("replace()", "old", *old),
                       *text_argument("replace()", "new", *replacement),
                       integer_argument("replace()", "count", count, -1)));
}

Value join_method(Interpreter& in, const Value& self, Arguments& args) {
  const auto [iterable] = bind("join()", {"iterable"}, 1, args);
  TextBuilder out(in.budget());
  bool is_first = true;
  for (const Value& item : items_of(in, *iterable)) {
    if (!is_first) out.append(self.text());
    is_first = false;
    const TextPtr text = text_argument("join()", "iterable's items", item);
    out.append(self.text().markup() ? *escaped(in.budget(), text) : *text);
  }
  return Value(out.finish(self.text().markup()));
}

/// The byte range of characters [start, end) of a text; both may count from the text's end.
std::pair<size_t, size_t> byte_range(Budget& budget, const Text& text,
                                     const std::optional<Value>& start,
                                     const std::optional<Value>& end) {
  const auto resolve = [&](const std::optional<Value>& part, int64_t otherwise) {
    if (!part || part->is_none()) return otherwise;
    const int64_t at = integer_argument("a str method", "start or end", part, 0);
    return std::clamp<int64_t>(at < 0 ? at + text.size() : at, 0, text.size());
  };
  budget.charge_bytes(text.bytes().size());
  const bool beyond = start && start->is_integer() && start->integer() > text.size();
  if (beyond) return {1, 0};  // not even the empty text is found there
  const int64_t first = resolve(start, 0), last = resolve(end, text.size());
  if (first > last) return {1, 0};
  return {text.offset(first), text.offset(last)};
}

template <bool at_start>
Value has_affix(Interpreter& in, const Value& self, Arguments& args) {
  const auto [affix, start, end] = bind("startswith()", {"prefix", "start", "end"}, 1, args);
  const auto [first, last] = byte_range(in.budget(), self.text(), start, end);
  if (first > last) return Value(false);
  const std::string_view bytes = std::string_view(self.text().bytes()).substr(first, last - first);
  const auto matches = [&](const Value& value) {
    const TextPtr text = text_argument("startswith() or endswith()", "prefix", value);
    return at_start ? bytes.starts_with(text->bytes()) : bytes.ends_with(text->bytes());
  };
  if (!affix->is<TuplePtr>()) return Value(matches(*affix));
  const std::vector<Value>& choices = affix->items()->values;
  in.budget().charge(std::ssize(choices));
  return Value(std::any_of(choices.begin(), choices.end(), matches));
}

template <bool prefix>
Value remove_affix(Interpreter& in, const Value& self, Arguments& args) {
  const auto [affix] = bind("removeprefix()", {"prefix"}, 1, args);
  const std::string& bytes = self.text().bytes();
  const std::string& part = text_argument("removeprefix()", "prefix", *affix)->bytes();
  const bool there = prefix ? bytes.starts_with(part) : bytes.ends_with(part);
  if (!there) return self;
  return Value(substring(in.budget(), self.text(), prefix ? part.size() : 0,
                         bytes.size() - (prefix ? 0 : part.size())));
}

/// The index of the character at which `sub` is found; -1 if it is not.
int64_t find_in(Interpreter& in, const Value& self, Arguments& args, bool from_right) {
  const auto [sub, start, end] = bind("find()", {"sub", "start", "end"}, 1, args);
  const std::string& part = text_argument("find()", "sub", *sub)->bytes();
  const auto [first, last] = byte_range(in.budget(), self.text(), start, end);
  if (first > last) return -1;
  const std::string_view bytes = std::string_view(self.text().bytes()).substr(0, last);
  const size_t at = from_right ? bytes.rfind(part) : bytes.find(part, first);
  if (at == std::string_view::npos || at < first) return -1;
  return Text(std::string(bytes.substr(0, at))).size();
}

template <bool from_right, bool must_exist>
Value find_method_of(Interpreter& in, const Value& self, Arguments& args) {
  const int64_t at = find_in(in, self, args, from_right);
  if (must_exist && at < 0) fail(ErrorCode::kUsage, "index(): the text is not there");
  return Value(at);
}

Value count(Interpreter& in, const Value& self, Arguments& args) {
  const auto [sub, start, end] = bind("count()", {"sub", "start", "end"}, 1, args);
  const std::string& part = text_argument("count()", "sub", *sub)->bytes();
  const auto [first, last] = byte_range(in.budget(), self.text(), start, end);
  if (first > last) return Value(int64_t{0});
  const std::string_view bytes = std::string_view(self.text().bytes()).substr(first, last - first);
  if (part.empty()) return Value(Text(std::string(bytes)).size() + 1);
  int64_t n = 0;
  for (size_t at = bytes.find(part); at != std::string_view::npos;
       at = bytes.find(part, at + part.size())) {
    ++n;
  }
  return Value(n);
}

template <bool left, bool right>
Value pad_method(Interpreter& in, const Value& self, Arguments& args) {
  const auto [width, fillchar] =
      bind("center(), ljust() or rjust()", {"width", "fillchar"}, 1, args);
  const TextPtr fill = optional_text("center(), ljust() or rjust()", "fillchar", fillchar);
  if (fill != nullptr && fill->size() != 1) {
    fail(ErrorCode::kUsage, "the fill character must be exactly one character long");
  }
  return Value(pad(in.budget(), self.text(), integer_argument("center()", "width", width, 0),
                   fill != nullptr ? fill->bytes() : " ", left, right));
}

Value zfill(Interpreter& in, const Value& self, Arguments& args) {
  const auto [width] = bind("zfill()", {"width"}, 1, args);
  const int64_t wanted = integer_argument("zfill()", "width", width, 0);
  const Text& text = self.text();
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  if (!has_sign) return Value(pad(in.budget(), text, wanted, "0", true, false));
  const TextPtr rest = substring(in.budget(), text, 1, text.bytes().size());
  TextBuilder out(in.budget());
  out.append(text, 0, 1);
  out.append(*pad(in.budget(), *rest, std::max<int64_t>(wanted, 1) - 1, "0", true, false));
  return Value(out.finish());
}

Value expandtabs(Interpreter& in, const Value& self, Arguments& args) {
  const auto [tabsize] = bind("expandtabs()", {"tabsize"}, 0, args);
  const int64_t size = integer_argument("expandtabs()", "tabsize", tabsize, 8);
  const Text& text = self.text();
  TextBuilder out(in.budget());
  int64_t column = 0;
  for (size_t at = 0; at < text.bytes().size(); at += char_bytes(text.bytes()[at])) {
    const char c = text.bytes()[at];
    in.budget().charge(1);
    if (c != '\t') {
      out.append(text, at, at + char_bytes(c));
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      const int64_t n = size - column % size;
      in.budget().charge_text(n);
      out.append(std::string(n, ' '));
      column += n;
    }
  }
  return Value(out.finish());
}

/// Whether the text is not empty and all its characters belong to a class.
using CharClass = bool (*)(int32_t);
template <CharClass is_in_class>
Value all_of(Interpreter& in, const Value& self, Arguments& args) {
  bind_none("a str method that asks for a class of characters", args);
  const std::string& bytes = self.text().bytes();
  in.budget().charge(std::ssize(bytes) / 8);
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    if (!is_in_class(decode_char(bytes, at))) return Value(false);
  }
  return Value(!bytes.empty());
}

bool is_alnum(int32_t c) { return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c); }

template <bool empty_counts, CharClass is_in_class>
Value all_of_or_empty(Interpreter& in, const Value& self, Arguments& args) {
  if (self.text().empty()) return Value(empty_counts);
  return all_of<is_in_class>(in, self, args);
}
bool is_ascii(int32_t c) { return c < 0x80; }

Value isidentifier(Interpreter& in, const Value& self, Arguments& args) {
  const std::string& bytes = self.text().bytes();
  if (bytes.empty() || is_decimal(decode_char(bytes, 0))) return Value(false);
  return all_of<&is_name_char>(in, self, args);
}

Value istitle(Interpreter& in, const Value& self, Arguments& args) {
  bind_none("istitle()", args);
  const std::string& bytes = self.text().bytes();
  in.budget().charge(std::ssize(bytes) / 8);
  bool in_word = false, any = false;
  for (size_t at = 0; at < bytes.size(); at += char_bytes(bytes[at])) {
    const int32_t c = decode_char(bytes, at);
    if (is_cased(c) && (is_lower(c) != in_word)) return Value(false);
    in_word = is_cased(c);
    any = any || in_word;
  }
  return Value(any);
}

template <bool want_upper>
Value has_case(Interpreter& in, const Value& self, Arguments& args) {
  bind_none("isupper() or islower()", args);
  in.budget().charge(self.text().size() / 8);
  return Value(is_in_case(self.text(), want_upper));
}

Value format_method(Interpreter& in, const Value& self, Arguments& args) {
  return format_braces(in, self.text(), args);
}

const std::unordered_map<std::string_view, Method>& text_methods() {
  static const auto* methods = [] {
    auto* map = new std::unordered_map<std::string_view, Method>();
    for (const Method& method : std::initializer_list<Method>{
             {"capitalize", &changed_self<&capitalize>},
             {"casefold", &changed_self<&casefold>},
             {"center", &pad_method<true, true>},
             {"count", &count},
             {"encode", nullptr},
             {"endswith", &has_affix<false>},
             {"expandtabs", &expandtabs},
             {"find", &find_method_of<false, false>},
             {"format", &format_method},
             {"format_map", nullptr},
             {"index", &find_method_of<false, true>},
             {"isalnum", &all_of<&is_alnum>},
             {"isalpha", &all_of<&is_alpha>},
             {"isascii", &all_of_or_empty<true, &is_ascii>},
             {"isdecimal", &all_of<&is_decimal>},
             {"isdigit", &all_of<&is_digit>},
             {"isidentifier", &isidentifier},
             {"islower", &has_case<false>},
             {"isnumeric", &all_of<&is_numeric>},
             {"isprintable", &all_of_or_empty<true, &is_printable>},
             {"isspace", &all_of<&is_space>},
             {"istitle", &istitle},
             {"isupper", &has_case<true>},
             {"join", &join_method},
             {"ljust", &pad_method<false, true>},
             {"lower", &changed_self<&lower>},
             {"lstrip", &strip_method<Side::left>},
             {"maketrans", nullptr},
             {"partition", &partition<false>},
             {"removeprefix", &remove_affix<true>},
             {"removesuffix", &remove_affix<false>},
             {"replace", &replace_method},
             {"rfind", &find_method_of<true, false>},
             {"rindex", &find_method_of<true, true>},
             {"rjust", &pad_method<true, false>},
             {"rpartition", &partition<true>},
             {"rsplit", &split_method<true>},
             {"rstrip", &strip_method<Side::right>},
             {"split", &split_method<false>},
             {"splitlines", &splitlines},
             {"startswith", &has_affix<true>},
             {"strip", &strip_method<Side::both>},
             {"swapcase", &changed_self<&swapcase>},
             {"title", &changed_self<&title>},
             {"translate", nullptr},
             {"upper", &changed_self<&upper>},
             {"zfill", &zfill},
         }) {
      map->emplace(method.name, method);
    }
    return map;
  }();
  return *methods;
}

}  // namespace

const Method* find_text_method(std::string_view name) {
  const auto at = text_methods().find(name);
  return at != text_methods().end() ? &at->second : nullptr;
}

}  // namespace snapkv::jinja
