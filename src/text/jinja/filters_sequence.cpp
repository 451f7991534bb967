// SPDX-License-Identifier: MIT
// Filters that work on the items of a value.
#include <algorithm>

#include "text/jinja/arguments.h"
#include "text/jinja/attribute_path.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"

namespace snapkv::jinja {
namespace {

Value generator(Interpreter& in, std::vector<Value> values) {
  return Value(in.make<Generator>(std::move(values)));
}

/// Pairs of a sort key and its item.
using Keyed = std::vector<std::pair<Value, Value>>;

void sort_keyed(Budget& budget, Keyed& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
    return compare(budget, reverse ? b.first : a.first, reverse ? a.first : b.first, "<") < 0;
  });
}

std::vector<Value> items_of_keyed(Keyed items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (auto& [key, value] : items) values.push_back(std::move(value));
  return values;
}

Value length(Interpreter&, const Value& value, Arguments& args) {
  bind_none("length", args);
  return Value(length_of(value));
}

Value first(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("first", args);
  const std::vector<Value> items = items_of(in, value);
  return items.empty() ? Value::undefined("there is no first item: the sequence is empty")
                       : items.front();
}

Value last(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("last", args);
  if (value.object<Generator>() != nullptr) {
    fail(ErrorCode::kUsage, "last needs a list: put '| list' before it");
  }
  const std::vector<Value> items = items_of(in, value);
  return items.empty() ? Value::undefined("there is no last item: the sequence is empty")
                       : items.back();
}

Value list(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("list", args);
  return value.is<ListPtr>() ? value : Value::list(items_of(in, value));
}

Value reverse(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("reverse", args);
  std::vector<Value> items = items_of(in, value);
  std::reverse(items.begin(), items.end());
  if (!value.is_text()) return generator(in, std::move(items));
  TextBuilder out(in.budget());
  for (const Value& item : items) out.append(item.text());
  return Value(out.finish(value.text().markup()));
}

/// The argument "a,b.c" of sort: one path for each part between commas.
std::vector<AttributePath> sort_paths(const std::optional<Value>& attribute) {
  std::vector<AttributePath> paths;
  if (!attribute || !attribute->is_text()) {
    paths.emplace_back(attribute);
    return paths;
  }
  std::string_view rest = attribute->text().bytes();
  for (size_t comma = rest.find(','); comma != std::string_view::npos; comma = rest.find(',')) {
    paths.emplace_back(Value::text(std::string(rest.substr(0, comma))));
    rest.remove_prefix(comma + 1);
  }
  paths.emplace_back(Value::text(std::string(rest)));
  return paths;
}

Value sort(Interpreter& in, const Value& value, Arguments& args) {
  const auto [reverse, case_sensitive, attribute] =
      bind("sort", {"reverse", "case_sensitive", "attribute"}, 0, args);
  const std::vector<AttributePath> paths = sort_paths(attribute);
  Keyed items;
  for (Value& item : items_of(in, value)) {
    std::vector<Value> keys;
    for (const AttributePath& path : paths) {
      keys.push_back(sort_key(in, path.get(in, item), flag_argument(case_sensitive)));
    }
    // The keys are lists: equal elements are not ordered and may therefore be none or undefined.
    items.emplace_back(Value::list(std::move(keys)), std::move(item));
  }
  sort_keyed(in.budget(), items, flag_argument(reverse));
  return Value::list(items_of_keyed(std::move(items)));
}

Value dictsort(Interpreter& in, const Value& value, Arguments& args) {
  const auto [case_sensitive, by, reverse] =
      bind("dictsort", {"case_sensitive", "by", "reverse"}, 0, args);
  const std::string order = by ? text_argument("dictsort", "by", *by)->bytes() : "key";
  if (order != "key" && order != "value") {
    fail(ErrorCode::kUsage, "dictsort: 'by' must be 'key' or 'value', not '{}'", order);
  }
  if (!value.is<DictPtr>()) {
    if (value.is_undefined()) fail_undefined(value);
    fail(ErrorCode::kUsage, "dictsort needs a dict, not a {}", value.type_name());
  }
  Keyed items;
  for (const auto& [key, entry] : value.dict().entries()) {
    in.budget().charge(1);
    items.emplace_back(sort_key(in, order == "key" ? key : entry, flag_argument(case_sensitive)),
                       Value::tuple({key, entry}));
  }
  sort_keyed(in.budget(), items, flag_argument(reverse));
  return Value::list(items_of_keyed(std::move(items)));
}

Value unique(Interpreter& in, const Value& value, Arguments& args) {
  const auto [case_sensitive, attribute] = bind("unique", {"case_sensitive", "attribute"}, 0, args);
  const AttributePath path(attribute);
  Dict seen;
  std::vector<Value> items;
  for (Value& item : items_of(in, value)) {
    Value key = sort_key(in, path.get(in, item), flag_argument(case_sensitive));
    const int64_t before = seen.size();
    seen.set(in.budget(), std::move(key), Value(None()));
    if (seen.size() > before) items.push_back(std::move(item));
  }
  return generator(in, std::move(items));
}

Value groupby(Interpreter& in, const Value& value, Arguments& args) {
  const auto [attribute, otherwise, case_sensitive] =
      bind("groupby", {"attribute", "default", "case_sensitive"}, 1, args);
  const AttributePath path(attribute, otherwise);
  Keyed items;
  for (Value& item : items_of(in, value)) {
    Value key = sort_key(in, path.get(in, item), flag_argument(case_sensitive));
    items.emplace_back(std::move(key), std::move(item));
  }
  sort_keyed(in.budget(), items, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin;
    std::vector<Value> group;
    for (; end < items.size() && equal(in.budget(), items[begin].first, items[end].first); ++end) {
      group.push_back(items[end].second);
    }
    Value name = path.get(in, group.front());  // as the first item spells it
    groups.emplace_back(std::make_shared<const Tuple>(
        std::vector<Value>{std::move(name), Value::list(std::move(group))}, true));
    begin = std::max(end, begin + 1);  // a number that does not equal itself forms a group
  }
  return Value::list(std::move(groups));
}

Value items_filter(Interpreter& in, const Value& value, Arguments& args) {
  bind_none("items", args);
  if (value.is_undefined()) return generator(in, {});
  if (!value.is<DictPtr>()) {
    fail(ErrorCode::kUsage, "items needs a dict, not a {}", value.type_name());
  }
  DictView view(*value.get_if<DictPtr>(), DictView::Kind::items);
  return generator(in, view.take_items(in));
}

/// An argument that is a number of items, 1 or more.
int64_t count_argument(std::string_view callee, std::string_view name,
                       const std::optional<Value>& value) {
  const int64_t n = integer_argument(callee, name, value, 0);
  if (n < 1) fail(ErrorCode::kUsage, "{}: '{}' must be 1 or more, not {}", callee, name, n);
  return n;
}

Value batch(Interpreter& in, const Value& value, Arguments& args) {
  const auto [linecount, fill_with] = bind("batch", {"linecount", "fill_with"}, 1, args);
  const int64_t size = count_argument("batch", "linecount", linecount);
  std::vector<Value> batches;
  std::vector<Value> current;
  for (Value& item : items_of(in, value)) {
    if (std::ssize(current) == size) batches.push_back(Value::list(std::exchange(current, {})));
    current.push_back(std::move(item));
  }
  if (!current.empty()) {
    if (fill_with && !fill_with->is_none()) {
      in.budget().charge(size - std::ssize(current));
      current.resize(size, *fill_with);
    }
    batches.push_back(Value::list(std::move(current)));
  }
  return generator(in, std::move(batches));
}

Value slice(Interpreter& in, const Value& value, Arguments& args) {
  const auto [slices, fill_with] = bind("slice", {"slices", "fill_with"}, 1, args);
  const int64_t count = count_argument("slice", "slices", slices);
  in.budget().charge(count);
  const std::vector<Value> items = items_of(in, value);
  const int64_t size = std::ssize(items) / count, n_larger = std::ssize(items) % count;
  std::vector<Value> parts;
  auto at = items.begin();
  for (int64_t i = 0; i < count; ++i) {
    const auto end = at + size + (i < n_larger);
    std::vector<Value> part(at, end);
    if (fill_with && !fill_with->is_none() && i >= n_larger) part.push_back(*fill_with);
    parts.push_back(Value::list(std::move(part)));
    at = end;
  }
  return generator(in, std::move(parts));
}

template <bool largest>
Value extreme(Interpreter& in, const Value& value, Arguments& args) {
  const auto [case_sensitive, attribute] =
      bind("min or max", {"case_sensitive", "attribute"}, 0, args);
  const AttributePath path(attribute);
  std::optional<Value> best, best_key;
  for (Value& item : items_of(in, value)) {
    Value key = sort_key(in, path.get(in, item), flag_argument(case_sensitive));
    const bool wins = !best || (largest ? compare(in.budget(), key, *best_key, ">") > 0
                                        : compare(in.budget(), key, *best_key, "<") < 0);
    if (!wins) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return best.value_or(Value::undefined("there is no item: the sequence is empty"));
}

Value sum(Interpreter& in, const Value& value, Arguments& args) {
  const auto [attribute, start] = bind("sum", {"attribute", "start"}, 0, args);
  const AttributePath path(attribute);
  Value total = start.value_or(Value(int64_t{0}));
  if (total.is_text()) fail(ErrorCode::kUsage, "sum can't add texts: use join");
  for (Value& item : items_of(in, value)) {
    total = arithmetic(in, "+", total, path.get(in, std::move(item)));
  }
  return total;
}

}  // namespace

std::span<const NamedFilter> sequence_filters() {
  static constexpr NamedFilter kFilters[] = {
      {"length", &length},   {"count", &length},       {"first", &first},
      {"last", &last},       {"list", &list},          {"reverse", &reverse},
      {"sort", &sort},       {"dictsort", &dictsort},  {"unique", &unique},
      {"groupby", &groupby}, {"items", &items_filter}, {"batch", &batch},
      {"slice", &slice},     {"min", &extreme<false>}, {"max", &extreme<true>},
      {"sum", &sum},
  };
  return kFilters;
}

}  // namespace snapkv::jinja
