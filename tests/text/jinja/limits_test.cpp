// SPDX-License-Identifier: MIT
// Hostile templates end in an error, soon, and use little memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/least_seconds.h"
#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

#if defined(SNAPKV_SANITIZED)
constexpr double kLimit = 3.0;
#else
constexpr double kLimit = 0.3;  // seconds of processor time, 3 to 5 times what the templates take
#endif

std::string repeat(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

const std::pair<const char*, std::string> kHostile[] = {
    {"nested loops", repeat("{% for x in range(100000) %}", 5) + repeat("{% endfor %}", 5)},
    {"a loop that does nothing",
     "{% for x in range(100000) %}{% for y in range(100) %}{% endfor %}"
     "{% endfor %}"},
    {"doubling text",
     "{% set ns = namespace(s='x') %}{% for i in range(100) %}"
     "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"},
    {"doubling lists",
     "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}"
     "{% set ns.s = ns.s + ns.s %}{% endfor %}"},
    {"doubling output",
     "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% else %}x"
     "{% endif %}{% endmacro %}{{ f(60) }}"},
    {"a long text", "{{ 'x' * 9223372036854775807 }}"},
    {"a long text in pieces", "{{ ('x' * 1000000) * 1000000 }}"},
    {"a long list", "{{ [1] * 9223372036854775807 }}"},
    {"many long texts", "{% for i in range(100000) %}{{ 'x' * 100000 }}{% endfor %}"},
    {"endless recursion", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
    {"recursion by caller",
     "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}"
     "{{ f() }}"},
    {"recursion by a loop", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
    {"recursion by map",
     "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ [1] | map('upper') | list }}"
     "{{ f(1) }}"},
    {"deep lists",
     "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}"
     "{% set ns.l = [ns.l] %}{% endfor %}"},
    {"deep namespaces",
     "{% set ns = namespace() %}{% for i in range(50000) %}"
     "{% set ns.l = namespace(l=ns.l) %}{% endfor %}{{ ns }}"},
    {"wide and deep values",
     "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}"
     "{% endfor %}{{ ns.l }}"},
    {"wide and deep JSON",
     "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}"
     "{% endfor %}{{ ns.l | tojson }}"},
    {"wide and deep comparison",
     "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}"
     "{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}"},
    {"a wide format", "{{ '%1000000000d' % 1 }}"},
    {"a wide brace format", "{{ '{:1000000000}'.format(1) }}"},
    {"a precise format", "{{ '%.1000000000f' % 1 }}"},
    {"a wide center", "{{ 'x'.center(9000000000000000000) }}"},
    {"a wide indent", "{{ 'x' | indent(9000000000000000000, true) }}"},
    {"a wide JSON indent", "{{ [1] | tojson(indent=9000000000000000000) }}"},
    {"many replacements",
     "{% set s = 'x' * 1000000 %}{% for i in range(1000) %}"
     "{{ s.replace('', 'yyyyyyyyyyyyyyyy') }}{% endfor %}"},
    {"many splits",
     "{% set s = 'x ' * 1000000 %}{% for i in range(1000) %}"
     "{% set l = s.split() %}{% endfor %}"},
    {"many searches",
     "{% set s = 'x' * 10000000 %}{% for i in range(100000) %}"
     "{% if 'y' in s %}{% endif %}{% endfor %}"},
    {"many comparisons",
     "{% set s = 'x' * 10000000 %}{% set t = 'x' * 10000000 %}"
     "{% for i in range(100000) %}{% if s == t %}{% endif %}{% endfor %}"},
    {"many characters by index",
     "{% set s = 'é' * 4000000 %}{% for i in range(100000) %}"
     "{{ s[3999999] }}{% endfor %}"},
    {"many slices",
     "{% set s = 'é' * 4000000 %}{% for i in range(100000) %}"
     "{{ s[3999998:] }}{{ s[::-1] | length }}{% endfor %}"},
    {"sorting again and again",
     "{% set l = range(100000) | list %}{% for i in range(1000) %}"
     "{% set m = l | sort(reverse=true) %}{% endfor %}"},
    {"unique again and again",
     "{% set l = range(100000) | list %}{% for i in range(1000) %}"
     "{% set m = l | unique | list %}{% endfor %}"},
    {"batches", "{{ [1] | batch(9000000000000000000, 0) | list }}"},
    {"slices", "{{ [1] | slice(9000000000000000000) | list }}"},
    {"a large range", "{{ range(9000000000000000000) | list }}"},
    {"large ranges", "{% for i in range(100000) %}{{ range(100000) | list | length }}{% endfor %}"},
    {"steps of a range", "{{ range(-9223372036854775807, 9223372036854775807) | length }}"},
    {"many macros",
     "{% for i in range(100000) %}{% macro f() %}{% endmacro %}"
     "{% for j in range(100) %}{% endfor %}{% endfor %}"},
    {"many namespaces",
     "{% for i in range(100000) %}{% for j in range(100) %}"
     "{% set n = namespace(a=1) %}{% endfor %}{% endfor %}"},
    {"many variables", repeat("{% set a = 1 %}", 10) + "{% for i in range(100000) %}" +
                           [] {
                             std::string sets;
                             for (int i = 0; i < 2000; ++i)
                               sets += "{% set v" + std::to_string(i) + " = 1 %}";
                             return sets;
                           }() +
                           "{% endfor %}"},
    {"arguments",
     "{% macro f() %}{{ varargs | length }}{% endmacro %}"
     "{% for i in range(100000) %}{{ f(*range(100000)) }}{% endfor %}"},
    {"case changes",
     "{% set s = 'ß' * 1000000 %}{% for i in range(1000) %}{{ s | upper | lower }}"
     "{% endfor %}"},
    {"escapes", "{% set s = '<' * 1000000 %}{% for i in range(1000) %}{{ s | e }}{% endfor %}"},
    {"urlencode",
     "{% set s = '<' * 1000000 %}{% for i in range(1000) %}{{ s | urlencode }}"
     "{% endfor %}"},
    {"texts for strftime", "{{ strftime_now('%100000000d') }}"},
    {"long strftime", "{{ strftime_now('%c' * 100000) }}"},
    {"powers", "{{ 9 ** 9 ** 9 ** 9 }}"},
    {"joins",
     "{% set l = ['x' * 1000] * 10000 %}{% for i in range(1000) %}{{ l | join('y') }}"
     "{% endfor %}"},
    {"filter blocks", repeat("{% filter upper %}", 100) +
                          "{% for i in range(100000) %}x{% endfor %}" +
                          "{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}" +
                          repeat("{% endfilter %}", 100)},
    // Templates that are hard to parse.
    {"parentheses", "{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}"},
    {"brackets", "{{ " + repeat("[", 100000) + repeat("]", 100000) + " }}"},
    {"braces", "{{ " + repeat("{1:", 100000) + "1" + repeat("}", 100000) + " }}"},
    {"nots", "{{ " + repeat("not ", 100000) + "1 }}"},
    {"signs", "{{ " + repeat("-", 100000) + "1 }}"},
    {"attributes", "{{ a" + repeat(".b", 100000) + " }}"},
    {"subscripts", "{{ a" + repeat("[0]", 100000) + " }}"},
    {"calls", "{{ a" + repeat("()", 100000) + " }}"},
    {"filters", "{{ a" + repeat("|upper", 100000) + " }}"},
    {"conditions", "{{ " + repeat("1 if 1 else ", 50000) + "1 }}"},
    {"nested ifs", repeat("{% if 1 %}", 20000)},
    {"nested fors", repeat("{% for x in y %}", 20000)},
    {"targets", "{% for " + repeat("(", 100000) + "a" + repeat(")", 100000) + " in x %}"},
    {"call blocks", repeat("{% call f() %}", 20000)},
    {"many parts", repeat("{{ 1 }}", 140000)},
    {"too long", std::string(2 << 20, 'x')},
    {"a comment", "{#" + repeat(" -", 400000)},
    {"raw", "{% raw %}" + repeat("{% ", 300000)},
    {"strings", "{{ '" + repeat("\\", 1000001)},
};

TEST(JinjaLimits, HostileTemplatesEndInAnErrorSoon) {
  for (const auto& [what, source] : kHostile) {
    SCOPED_TRACE(what);
    const double seconds =
        least_seconds(kLimit, 5, [&hostile = source] { EXPECT_THROW(render(hostile), Error); });
    EXPECT_LE(seconds, kLimit);
    if (std::getenv("SNAPKV_SHOW_TIMES") != nullptr)
      std::printf("%6.1f ms %s\n", seconds * 1e3, what);
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
#if !defined(SNAPKV_SANITIZED)
  EXPECT_LT(usage.ru_maxrss, 400 << 10) << "KiB";
#endif
}

TEST(JinjaLimits, LongConversationsAreNotHostile) {
  // 400 messages of 20 KB: twice the text that fits a context of a million tokens.
  Json messages = Json::array();
  for (int i = 0; i < 400; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                        {"content", repeat("some words, äöü \"quoted\"\n", 800)}});
  }
  const std::string variables = Json{{"messages", messages}}.dump();
  const std::string source =
      "{% for m in messages %}{% set content = m.content | trim %}"
      "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
      "{{ '<|' + m.role + '|>' + content + '\\n' }}{{ m | tojson }}{% endfor %}";
  EXPECT_GT(render(source, variables).text.size(), 14u << 20);
}

TEST(JinjaLimits, JsonIsBounded) {
  EXPECT_THROW(render("", R"({"a": )" + repeat("[", 100000)), Error);
  EXPECT_THROW(render("", repeat(R"({"a":)", 100000)), Error);
  EXPECT_THROW(render("", "[]"), Error);
  EXPECT_THROW(render("", "{\"a\": 1"), Error);
  EXPECT_THROW(render("", R"({"a": 18446744073709551615})"), Error);
  EXPECT_THROW(render("", "{\"a\": \"\xff\"}"), Error);
  EXPECT_EQ(render("{{ a }}{{ b }}", R"({"a": -9223372036854775808, "b": "\ud83d\ude00"})").text,
            "-9223372036854775808\U0001f600");
}

}  // namespace
}  // namespace snapkv::test
