// SPDX-License-Identifier: MIT
// Which bytes of a rendered text come from the conversation, however the template changed them.
#include <gtest/gtest.h>

#include "tests/text/jinja/render.h"

namespace snapkv::test {
namespace {

/// The text, with 【】 around the parts that come from the conversation.
std::string marked(const std::string& source, const std::string& variables) {
  const RenderedChat chat = render(source, variables);
  std::string text;
  size_t at = 0;
  for (const ByteRange& range : chat.input) {
    EXPECT_LT(range.begin, range.end);
    EXPECT_LE(at, range.begin);
    text += chat.text.substr(at, range.begin - at) + "【" +
            chat.text.substr(range.begin, range.end - range.begin) + "】";
    at = range.end;
  }
  EXPECT_LE(at, chat.text.size());
  return text + chat.text.substr(at);
}

const char* const kChat = R"({
  "messages": [{"role": "user", "content": " Hi, <|im_end|> é "}],
  "tools": [{"name": "f<|x|>", "k<": [1, "v"]}],
  "bos_token": "<s>", "date": "today"})";

std::string marked(const std::string& expression) {
  return marked("{% set c = messages[0].content %}{{ " + expression + " }}", kChat);
}

TEST(JinjaMarks, ContentIsInputAndRolesAndOptionsAreNot) {
  EXPECT_EQ(marked("{% for m in messages %}{{ bos_token }}<|{{ m.role }}|>{{ m.content }}<end>"
                   "{% endfor %}{{ date }}",
                   kChat),
            "<s><|user|>【 Hi, <|im_end|> é 】<end>today");
}

TEST(JinjaMarks, OperatorsKeepThem) {
  EXPECT_EQ(marked("'a' + c + 'b'"), "a【 Hi, <|im_end|> é 】b");
  EXPECT_EQ(marked("'a' ~ c ~ 1"), "a【 Hi, <|im_end|> é 】1");
  EXPECT_EQ(marked("c * 2"), "【 Hi, <|im_end|> é  Hi, <|im_end|> é 】");
  EXPECT_EQ(marked("('a' + c + 'b')[1:5]"), "【 Hi,】");
  EXPECT_EQ(marked("('a' + c + 'b')[0]"), "a");
  EXPECT_EQ(marked("('a' + c)[::-1]"), "【 é >|dne_mi|< ,iH 】a");
  EXPECT_EQ(marked("'<%s>' % c"), "<【 Hi, <|im_end|> é 】>");
}

TEST(JinjaMarks, MethodsAndFiltersKeepThem) {
  EXPECT_EQ(marked("('<' + c + '>') | trim"), "<【 Hi, <|im_end|> é 】>");
  EXPECT_EQ(marked("c | trim"), "【Hi, <|im_end|> é】");
  EXPECT_EQ(marked("c.strip().split(', ')[1] + '!'"), "【<|im_end|> é】!");
  EXPECT_EQ(marked("('x' + c | trim).upper()"), "X【HI, <|IM_END|> É】");
  EXPECT_EQ(marked("('abc' + c | trim).replace('Hi', 'b')"), "abcb【, <|im_end|> é】");
  EXPECT_EQ(marked("'a-b'.replace('-', c | trim)"), "a【Hi, <|im_end|> é】b");
  EXPECT_EQ(marked("[c | trim, 'x'] | join('|')"), "【Hi, <|im_end|> é】|x");
  EXPECT_EQ(marked("'{}!'.format(c | trim)"), "【Hi, <|im_end|> é】!");
  EXPECT_EQ(marked("c | trim | tojson"), "\"【Hi, <|im_end|> é】\"");
  EXPECT_EQ(marked("tools | tojson"),
            "[{\"【name】\": \"【f<|x|>】\", \"【k<】\": [1, \"【v】\"]}]");
  EXPECT_EQ(marked("c | trim | e"), "【Hi, &lt;|im_end|&gt; é】");
  EXPECT_EQ(marked("c | trim | list | first"), "【H】");
  EXPECT_EQ(marked("('a\\n' + c | trim) | indent(2)"), "a\n  【Hi, <|im_end|> é】");
  EXPECT_EQ(marked("c.partition(',') | first | trim ~ c.title() | length"), "【Hi】18");
  EXPECT_EQ(marked("c | trim | urlencode"), "【Hi%2C%20%3C%7Cim_end%7C%3E%20%C3%A9】");
  EXPECT_EQ(marked("(c | trim).center(19, '*')"), "**【Hi, <|im_end|> é】*");
  EXPECT_EQ(marked("tools[0].keys() | join('+')"), "【name】+【k<】");
}

TEST(JinjaMarks, StatementsKeepThem) {
  EXPECT_EQ(marked("{% set x %}a{{ messages[0].content | trim }}b{% endset %}{{ x }}", kChat),
            "a【Hi, <|im_end|> é】b");
  EXPECT_EQ(
      marked("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(messages[0].content | trim) }}", kChat),
      "<【Hi, <|im_end|> é】>");
  EXPECT_EQ(marked("{% filter upper %}a{{ messages[0].content | trim }}{% endfilter %}", kChat),
            "A【HI, <|IM_END|> É】");
  EXPECT_EQ(marked("{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}"
                   "{{ messages[0].content | trim }}{% endcall %}",
                   kChat),
            "[【Hi, <|im_end|> é】]");
  EXPECT_EQ(marked("{% for c in messages[0].content | trim %}{% if loop.index < 3 %}{{ c }}-"
                   "{% endif %}{% endfor %}",
                   kChat),
            "【H】-【i】-");
}

TEST(JinjaMarks, OnlyRolesOfMessagesAreTheApplications) {
  EXPECT_EQ(marked("{{ messages[0].x.role }}{{ messages[0].role }}{{ tools[0].role }}"
                   "{{ documents[0] }}{{ other.content }}",
                   R"({"messages": [{"role": "r", "x": {"role": "s"}}], "tools": [{"role": "t"}],
                       "documents": ["d"], "other": {"content": "o"}})"),
            "【s】r【td】o");
}

}  // namespace
}  // namespace snapkv::test
