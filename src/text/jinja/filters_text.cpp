// SPDX-License-Identifier: MIT
// Filters that turn a value into a text.
#include <algorithm>
#include <limits>

#include "text/jinja/arguments.h"
#include "text/jinja/attribute_path.h"
#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/json.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"

namespace snapkv::jinja {
namespace {

using Change = TextPtr (*)(Budget&, const Text&);
template <Change change>
Value changed_text(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("a filter that changes the case", args);
  return Value(change(in.budget(), *to_text(in.budget(), value)));
}

Value title_filter(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("title", args);
  return Value(with_markup(title_words(in.budget(), *to_text(in.budget(), value)), false));
}

Value trim(Interpreter& in, const Value& value, Arguments& args) {
  const auto [chars] = bind("trim", {"chars"}, 0, args);
  const TextPtr set = optional_text("trim", "chars", chars);
  return Value(strip(in.budget(), *to_text(in.budget(), value), set.get(), Side::both));
}

Value string(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("string", args);
  return Value(to_text(in.budget(), value));
}

Value safe(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("safe", args);
  return Value(with_markup(to_text(in.budget(), value), true));
}

Value escape(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("escape", args);
  return Value(escaped(in.budget(), to_text(in.budget(), value)));
}

Value forceescape(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("forceescape", args);
  return Value(escaped(in.budget(), with_markup(to_text(in.budget(), value), false)));
}

Value replace_filter(Interpreter& in, const Value& value, Arguments& args) {
  const auto [old, replacement, count] = bind("replace", {"old", "new", "count"}, 2, args);
  const bool all = !count || count->is_none();
  Budget& budget = in.budget();
  const TextPtr text = with_markup(to_text(budget, value), false);
  return Value(replace(budget, *text, *to_text(budget, *old), *to_text(budget, *replacement),
                       all ? -1 : integer_argument("replace", "count", count, -1)));
}

Value indent(Interpreter& in, const Value& value, Arguments& args) {
  const auto [width, first, blank] = bind("indent", {"width", "first", "blank"}, 0, args);
  Budget& budget = in.budget();
  const TextPtr text = text_argument("indent", "its value", value);
  TextPtr step;
  if (width && width->is_text()) {
    step = width->text_ptr();
  } else {
    step = pad(budget, Text(""), integer_argument("indent", "width", width, 4), " ", true, false);
  }
  TextBuilder with_newline(budget);  // so that a text ending in a newline has an empty last line
  with_newline.append(*text);
  with_newline.append("\n");
  const std::vector<TextPtr> lines = split_lines(budget, *with_newline.finish(), false);
  TextBuilder out(budget);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    const bool indents = i == 0 ? flag_argument(first) : flag_argument(blank) || !lines[i]->empty();
    if (indents) out.append(*step);
    out.append(*lines[i]);
  }
  return Value(out.finish(text->markup()));
}

Value format(Interpreter& in, const Value& value, Arguments& args) {
  if (!args.positional.empty() && !args.keyword.empty()) {
    fail(ErrorCode::kUsage, "format takes values either in order or by name");
  }
  const TextPtr text = to_text(in.budget(), value);
  if (args.keyword.empty()) {
    return format_percent(in, *text, Value::tuple(std::move(args.positional)));
  }
  auto names = std::make_shared<Dict>();
  for (auto& [name, entry] : args.keyword) {
    names->set(in.budget(), Value::text(name), std::move(entry));
  }
  return format_percent(in, *text, Value(DictPtr(std::move(names))));
}

Value join(Interpreter& in, const Value& value, Arguments& args) {
  const auto [d, attribute] = bind("join", {"d", "attribute"}, 0, args);
  Budget& budget = in.budget();
  const TextPtr separator = d ? to_text(budget, *d) : make_text("");
  const AttributePath path(attribute);
  TextBuilder out(budget);
  bool is_first = true;
  for (const Value& item : items_of(in, value)) {
    budget.charge(1);
    if (!std::exchange(is_first, false)) out.append(*separator);
    print(budget, path.get(in, item), out);
  }
  return Value(out.finish());
}

Value center(Interpreter& in, const Value& value, Arguments& args) {
  const auto [width] = bind("center", {"width"}, 0, args);
  return Value(pad(in.budget(), *to_text(in.budget(), value),
                   integer_argument("center", "width", width, 80), " ", true, true));
}

Value truncate(Interpreter& in, const Value& value, Arguments& args) {
  const auto [length, killwords, end, leeway] =
      bind("truncate", {"length", "killwords", "end", "leeway"}, 0, args);
  const TextPtr mark = end ? text_argument("truncate", "end", *end) : make_text("...");
  const int64_t limit = integer_argument("truncate", "length", length, 255);
  const int64_t slack =
      leeway && leeway->is_none() ? 5 : integer_argument("truncate", "leeway", leeway, 5);
  if (limit < mark->size() || slack < 0) {
    fail(ErrorCode::kUsage, "truncate: 'length' must be {} or more and 'leeway' 0 or more",
         mark->size());
  }
  if (length_of(value) - slack <= limit) return value;
  const TextPtr text = text_argument("truncate", "its value", value);
  TextPtr kept = substring(in.budget(), *text, 0, text->offset(limit - mark->size()));
  if (!flag_argument(killwords)) {
    const Text space(" ");
    kept = split(in.budget(), *kept, &space, 1, true).front();
  }
  TextBuilder out(in.budget());
  out.append(*kept);
  out.append(*mark);
  return Value(out.finish(text->markup()));
}

Value wordcount(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("wordcount", args);
  const TextPtr text = to_text(in.budget(), value);
  in.budget().charge(text->size() / 8);
  int64_t n = 0;
  bool in_word = false;
  for (size_t at = 0; at < text->bytes().size(); at += char_bytes(text->bytes()[at])) {
    const int32_t c = decode_char(text->bytes(), at);
    const bool is_word = c == '_' || is_alpha(c) || is_numeric(c);
    n += is_word && !in_word;
    in_word = is_word;
  }
  return Value(n);
}

/// Appends percent encoding; in a query, a space becomes a plus, and / is encoded too.
void append_quoted(Budget& budget, const Text& text, bool in_query, TextBuilder& out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  budget.charge(text.size());
  for (size_t at = 0; at < text.bytes().size(); ++at) {
    const char c = text.bytes()[at];
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
        std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !in_query);
    const bool input = text.has_input(at, at + 1);
    if (is_plain) {
      out.append_as({&c, 1}, input);
    } else if (c == ' ' && in_query) {
      out.append_as("+", input);
    } else {
      const char quoted[] = {'%', kDigits[byte >> 4], kDigits[byte & 15]};
      out.append_as({quoted, sizeof(quoted)}, input);
    }
  }
}

Value urlencode(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("urlencode", args);
  Budget& budget = in.budget();
  TextBuilder out(budget);
  if (value.is_text() || !is_iterable(value)) {
    append_quoted(budget, *to_text(budget, value), false, out);
    return Value(out.finish());
  }
  bool is_first = true;
  const std::vector<Value> pairs =
      value.is<DictPtr>()
          ? in.make<DictView>(*value.get_if<DictPtr>(), DictView::Kind::items)->take_items(in)
          : items_of(in, value);
  for (const Value& pair : pairs) {
    const std::vector<Value> parts = items_of(in, pair);
    if (parts.size() != 2) fail(ErrorCode::kUsage, "urlencode needs pairs of key and value");
    if (!std::exchange(is_first, false)) out.append("&");
    append_quoted(budget, *to_text(budget, parts[0]), true, out);
    out.append("=");
    append_quoted(budget, *to_text(budget, parts[1]), true, out);
  }
  return Value(out.finish());
}

Value tojson(Interpreter& in, const Value& value, Arguments& args) {
  // The parameters are in transformers' order.
  const auto [ascii, width, separators, sort_keys] =
      bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, args);
  JsonStyle style;
  style.ascii = flag_argument(ascii);
  style.sort_keys = flag_argument(sort_keys);
  if (width && !width->is_none()) {
    style.item_separator = ",";
    if (width->is_text()) {
      style.indent = width->text().bytes();
    } else {
      const int64_t n = std::max<int64_t>(integer_argument("tojson", "indent", width, 0), 0);
      in.budget().charge_text(n);
      style.indent = std::string(n, ' ');
    }
  }
  if (separators && !separators->is_none()) {
    const std::vector<Value> parts = items_of(in, *separators);
    if (parts.size() != 2) fail(ErrorCode::kUsage, "tojson: 'separators' must be two texts");
    style.item_separator = text_argument("tojson", "separators", parts[0])->bytes();
    style.key_separator = text_argument("tojson", "separators", parts[1])->bytes();
  }
  return Value(write_json(in.budget(), value, style));
}

}  // namespace

std::span<const NamedFilter> text_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"upper", &changed_text<&upper>},
      {"lower", &changed_text<&lower>},
      {"capitalize", &changed_text<&capitalize>},
      {"title", &title_filter},
      {"trim", &trim},
      {"string", &string},
      {"safe", &safe},
      {"escape", &escape},
      {"e", &escape},
      {"forceescape", &forceescape},
      {"replace", &replace_filter},
      {"indent", &indent},
      {"format", &format},
      {"join", &join},
      {"center", &center},
      {"truncate", &truncate},
      {"wordcount", &wordcount},
      {"urlencode", &urlencode},
      {"tojson", &tojson},
  };
  return kFilters;
}

}  // namespace snapkv::jinja
