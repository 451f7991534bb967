// SPDX-License-Identifier: MIT
// Error messages name the template, the line, and what is wrong or not supported there.
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

void expect(const std::string& source, std::initializer_list<std::string_view> words,
            const std::string& variables = "{}") {
  SCOPED_TRACE(source);
  expect_error(ErrorCode::kUsage, words, [&] { render(source, variables); });
}

TEST(JinjaErrors, NameTheTemplateTheLineAndTheConstruct) {
  expect("a\n{% include 'x' %}", {"test: line 2: ", "'include' is not supported"});
  expect("a\n\n{% block x %}{% endblock %}", {"test: line 3: ", "'block' is not supported"});
  expect("{% nosuch %}", {"line 1: ", "unknown statement 'nosuch'"});
  expect("{% if 1 %}\n{% endfor %}",
         {"line 2: ", "'endfor'", "expected 'elif' or 'else' or 'endif'"});
  expect("\n{% if 1 %}\n\n", {"line 2: ", "endif"});
  expect("{{ 1 |\nnosuch }}", {"line 2: ", "the filter 'nosuch' is not supported"});
  expect("{{ 1 | urlize }}", {"the filter 'urlize' is not supported"});
  expect("{{ 1 is nosuch }}", {"line 1: ", "the test 'nosuch' is not supported"});
  expect("{{ 'abc }}", {"line 1: ", "string is not closed"});
  expect("\n{# abc", {"line 2: ", "comment is not closed"});
  expect("\n\n{% raw %}\n", {"line 3: ", "raw block is not closed"});
  expect("{{ 1 ? 2 }}", {"line 1: ", "unexpected character '?'"});
  expect("{{ (1] }}", {"line 1: ", "unexpected ']', expected ')'"});
  expect("{{ 1 2 }}", {"line 1: ", "expected '}}', found '2'"});
  expect("{{ 99999999999999999999 }}", {"line 1: ", "64 bits"});
}

TEST(JinjaErrors, OfRenderingNameTheLine) {
  expect("\n{{ a.b.c }}", {"test: line 2: ", "'dict object' has no attribute 'b'"}, R"({"a": {}})");
  expect("{{ nosuch.b }}", {"line 1: ", "'nosuch' is undefined"});
  expect("\n\n{{ messages[0].role }}", {"line 3: ", "list object has no element 0"},
         R"({"messages": []})");
  expect("{% for m in messages %}\n{{ m.content\n + 'x' }}{% endfor %}", {"line 3: ", "NoneType"},
         R"({"messages": [{"content": null}]})");
  expect("{{ 1 + 'a' }}", {"unsupported operand types for +: 'int' and 'str'"});
  expect("{{ 'a' + 1 }}", {"can only add a str to a str, not a int"});
  expect("{{ 1 / 0 }}", {"division by zero"});
  expect("{{ [1, 2].append(3) }}", {"'append' would change a list"});
  expect("{{ 9223372036854775807 + 1 }}", {"64 bits"});
  expect("{{ 'x'.upper }}", {"'upper' can't be printed"});
  expect("{{ [1] | map('string') }}", {"can't be printed", "| list"});
  expect("\n{{ raise_exception('Roles must alternate') }}",
         {"test: line 2: the chat template refuses the conversation: Roles must alternate"});
  expect("{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}",
         {"line 2: ", "macro 'f'", "no more than 1"});
  expect("{{ 'a' | replace('b') }}", {"replace needs an argument 'new'"});
  expect("{{ 'a' | indent(widht=2) }}", {"indent has no argument 'widht'"});
  expect("{{ 'a' | center('b') }}", {"center: 'width' must be an integer, not str"});
}

TEST(JinjaErrors, OfInput) {
  expect("\xff", {"test: ", "not UTF-8 from byte 0"});
  expect("", {"test: ", "not JSON"}, "{");
  expect("", {"test: ", "must be an object"}, "[1]");
}

TEST(JinjaErrors, UnknownFiltersMayBeInBranchesThatAreNotTaken) {
  EXPECT_EQ(render("{% if false %}{{ 1 | nosuch }}{% endif %}x").text, "x");
  expect("{% if true %}\n{{ 1 | nosuch }}{% endif %}x", {"line 2: ", "the filter 'nosuch'"});
}

}  // namespace
}  // namespace snapkv::test
