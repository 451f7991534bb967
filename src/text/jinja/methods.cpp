// SPDX-License-Identifier: MIT
// Methods of lists, tuples, dictionaries and numbers, and the lookup of methods.
#include "text/jinja/methods.h"

#include <algorithm>
#include <cmath>

#include "text/jinja/arguments.h"
#include "text/jinja/interpreter.h"

namespace snapkv::jinja {
namespace {

Value dict_get(Interpreter& in, const Value& self, Arguments& args) {
  // Python's get() takes no keyword arguments.
  if (!args.keyword.empty()) fail(ErrorCode::kUsage, "get() takes no keyword arguments");
  auto [key, otherwise] = bind("get()", {"key", "default"}, 1, args);
  const Value* value = self.dict().find(in.budget(), *key);
  return value != nullptr ? *value : otherwise.value_or(Value(None()));
}

template <DictView::Kind kind>
Value dict_view(Interpreter& in, const Value& self, Arguments& args) {
  bind_none("a dict's keys(), values() or items()", args);
  return Value(in.make<DictView>(*self.get_if<DictPtr>(), kind));
}

Value copy(Interpreter&, const Value& self, Arguments& args) {
  bind_none("copy()", args);
  return self;  // values are immutable
}

Value count_item(Interpreter& in, const Value& self, Arguments& args) {
  const auto [value] = bind("count()", {"value"}, 1, args);
  const std::vector<Value>& items = self.items()->values;
  int64_t n = 0;
  for (const Value& item : items) n += equal(in.budget(), item, *value);
  return Value(n);
}

Value index_of_item(Interpreter& in, const Value& self, Arguments& args) {
  const auto [value, start, stop] = bind("index()", {"value", "start", "stop"}, 1, args);
  const std::vector<Value>& items = self.items()->values;
  const int64_t length = std::ssize(items);
  const auto within = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  const int64_t end = within(integer_argument("index()", "stop", stop, length));
  for (int64_t i = within(integer_argument("index()", "start", start, 0)); i < end; ++i) {
    if (equal(in.budget(), items[i], *value)) return Value(i);
  }
  fail(ErrorCode::kUsage, "index(): the value is not in the list");
}

Value is_integer(Interpreter&, const Value& self, Arguments& args) {
  bind_none("is_integer()", args);
  return Value(std::trunc(self.number()) == self.number());
}

constexpr Method kDictMethods[] = {
    {"get", &dict_get},
    {"items", &dict_view<DictView::Kind::items>},
    {"keys", &dict_view<DictView::Kind::keys>},
    {"values", &dict_view<DictView::Kind::values>},
    {"copy", &copy},
    {"clear", nullptr},
    {"fromkeys", nullptr},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
};
constexpr Method kListMethods[] = {
    {"count", &count_item}, {"index", &index_of_item}, {"copy", &copy},     {"append", nullptr},
    {"clear", nullptr},     {"extend", nullptr},       {"insert", nullptr}, {"pop", nullptr},
    {"remove", nullptr},    {"reverse", nullptr},      {"sort", nullptr},
};
constexpr Method kTupleMethods[] = {{"count", &count_item}, {"index", &index_of_item}};
constexpr Method kNumberMethods[] = {{"is_integer", &is_integer}};

template <size_t N>
const Method* find_in(const Method (&methods)[N], std::string_view name) {
  const Method* at =
      std::find_if(methods, methods + N, [&](const Method& method) { return method.name == name; });
  return at != methods + N ? at : nullptr;
}

}  // namespace

const Method* find_method(const Value& self, std::string_view name) {
  if (self.is_text()) return find_text_method(name);
  if (self.is<DictPtr>()) return find_in(kDictMethods, name);
  if (self.is<ListPtr>()) return find_in(kListMethods, name);
  if (self.is<TuplePtr>()) return find_in(kTupleMethods, name);
  return self.is_number() ? find_in(kNumberMethods, name) : nullptr;
}

std::string forbidden(const Value& self, std::string_view name) {
  if (self.is_text()) return fmt::format("the method '{}' of str is not supported", name);
  return fmt::format("'{}' would change a {}, which a chat template may not do", name,
                     self.type_name());
}

}  // namespace snapkv::jinja
