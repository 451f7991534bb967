// SPDX-License-Identifier: MIT
#include "text/grammar/schema_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "text/grammar/json_schema.h"

namespace snapkv::grammar {
namespace {

constexpr size_t kMostName = 100;                   // names of properties can be of any length
constexpr size_t kMostRuleBytes = size_t{1} << 26;  // written for rules, copied parts included

struct JsonRule {
  std::string_view name;
  std::string_view body;
  std::vector<std::string_view> needs;
};

// The language is that of llama.cpp's rules: white space after { [ , and : and before } and ], with
// at most two line breaks and 20 columns, so that no model fills its answer with it; numbers with
// at most 16 digits in each part. Escapes for surrogates are left out, and so are days that a month
// does not have.
const std::vector<JsonRule>& json_rules() {
  static const std::vector<JsonRule> rules = {
      {"space", R"(| " " | "\n"{1,2} [ \t]{0,20})", {}},
      {"char", R"([^"\\\x00-\x1F\x7F] | "\\" (["\\bfnrt] | "u" code-unit))", {"code-unit"}},
      {"code-unit", R"([0-9a-cA-CefEF] hex{3} | [dD] [0-7] hex{2})", {"hex"}},
      {"hex", "[0-9a-fA-F]", {}},
      {"string", R"("\"" char* "\"")", {"char"}},
      {"whole", "[0] | [1-9] [0-9]{0,15}", {}},
      {"number", R"("-"? whole ("." [0-9]{1,16})? ([eE] [-+]? whole)?)", {"whole"}},
      {"integer", R"("-"? whole)", {"whole"}},
      {"boolean", R"("true" | "false")", {}},
      {"null", R"("null")", {}},
      {"value",
       "object | array | string | number | boolean | null",
       {"object", "array", "string", "number", "boolean", "null"}},
      {"member", R"(string ":" space value)", {"string", "space", "value"}},
      {"object", R"("{" space (member ("," space member)*)? space "}")", {"member", "space"}},
      {"array", R"("[" space (value ("," space value)*)? space "]")", {"value", "space"}},
      {"leap-year",
       "[0-9]{2} (\"0\" [48] | [2468] [048] | [13579] [26]) | "
       "(\"0\" [048] | [2468] [048] | [13579] [26]) \"00\"",
       {}},
      {"month-and-day",
       "(\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | "
       "(\"0\" [469] | \"11\") \"-\" (\"0\" [1-9] | [12] [0-9] | \"30\") | "
       "\"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8])",
       {}},
      {"date",
       R"([0-9]{4} "-" month-and-day | leap-year "-02-29")",
       {"month-and-day", "leap-year"}},
      {"hour-and-minute", R"(([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])", {}},
      {"time",
       R"(hour-and-minute ":" [0-5] [0-9] ("." [0-9]{3})? ("Z" | [-+] hour-and-minute))",
       {"hour-and-minute"}},
      {"date-time", R"(date "T" time)", {"date", "time"}},
      {"uuid", R"(hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12})", {"hex"}},
  };
  return rules;
}

const JsonRule* find_rule(std::string_view name) {
  const auto& rules = json_rules();
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const JsonRule& r) { return r.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace

std::string SchemaRules::reserve(const std::string& wish) {
  if (order_.size() >= schema_limits().n_rules) {
    fail(ErrorCode::kUsage, "{}: too large: more than {} rules", name_, schema_limits().n_rules);
  }
  std::string name;
  for (const char c : std::string_view(wish).substr(0, kMostName)) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += fits ? c : '-';
  }
  int& number = last_number_[name];
  std::string free = number == 0 ? name : fmt::format("{}-{}", name, ++number);
  while (bodies_.contains(free) || has_json(free)) {
    number = std::max(number, 1) + 1;
    free = fmt::format("{}-{}", name, number);
  }
  number = std::max(number, 1);
  bodies_[free] = "";
  order_.push_back(free);
  return free;
}

void SchemaRules::define(const std::string& name, std::string body) {
  count_bytes(body.size());
  bodies_[name] = std::move(body);
}

void SchemaRules::count_bytes(size_t n) {
  n_bytes_ += n;
  if (n_bytes_ <= kMostRuleBytes) return;
  fail(ErrorCode::kUsage, "{}: too large: its rules take more than {} MiB", name_,
       kMostRuleBytes >> 20);
}

std::string SchemaRules::add(const std::string& wish, std::string body) {
  std::string name = reserve(wish);
  define(name, std::move(body));
  return name;
}

bool SchemaRules::has_json(std::string_view name) { return find_rule(name) != nullptr; }

std::string SchemaRules::json(std::string_view name) {
  const JsonRule* const rule = find_rule(name);
  SNAPKV_CHECK(rule != nullptr);
  const std::string key(name);
  if (bodies_.contains(key)) return key;
  bodies_[key] = rule->body;
  order_.push_back(key);
  for (const std::string_view need : rule->needs) json(need);
  return key;
}

std::string SchemaRules::text() const {
  std::string text;
  for (const std::string& name : order_) text += fmt::format("{} ::= {}\n", name, bodies_.at(name));
  return text;
}

std::string gbnf_class(const CharSet& set) {
  const auto character = [](uint32_t c) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == ' ' || c == '_';
    return plain ? std::string(1, static_cast<char>(c)) : fmt::format("\\U{:08X}", c);
  };
  std::string text = "[";
  for (const auto& [first, last] : set.ranges()) {
    text += character(first);
    if (last > first) text += "-" + character(last);
  }
  return text + "]";
}

}  // namespace snapkv::grammar
