// SPDX-License-Identifier: MIT
// Conversations become prompts: with their template's form where it has one, else as text.
#include "chat/conversation.h"

#include <gtest/gtest.h>

#include "chat/field_error.h"

namespace snapkv::chat {
namespace {

/// Shows roles, contents and, if `with_tools`, tools and calls.
ChatTemplate plain_template(bool with_tools = false) {
  return ChatTemplate::parse(
      std::string(with_tools ? "{% if tools %}[{{ tools | length }} tools]{% endif %}"
                               "{# tool_calls <tool_call> #}"
                             : "") +
          "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
          "{% if add_generation_prompt %}<answer>{% endif %}",
      "test");
}

class Rendering : public ::testing::Test {
 protected:
  std::string rendered() {
    warnings_.clear();
    return render(conversation_, {plain_, with_tools_, variables_, system_}, warnings_).text;
  }
  void add(const char* role, const char* content) {
    conversation_.messages.push_back({{"role", role}, {"content", content}});
  }
  void add_tool() {
    conversation_.tools.list.push_back(
        {{"type", "function"},
         {"function", {{"name", "f"}, {"parameters", {{"type", "object"}}}}}});
  }

  Conversation conversation_;
  std::optional<ChatTemplate> plain_ = plain_template(), with_tools_ = plain_template(true);
  Json variables_ = Json::object();
  std::string system_;
  std::vector<std::string> warnings_;
};

TEST_F(Rendering, BeginsWithTheDefaultSystemMessage) {
  add("user", "hello");
  EXPECT_EQ(rendered(), "<user>hello<answer>");
  system_ = "be brief";
  EXPECT_EQ(rendered(), "<system>be brief<user>hello<answer>");
  conversation_.messages.insert(conversation_.messages.begin(),
                                Json{{"role", "system"}, {"content", "own"}});
  EXPECT_EQ(rendered(), "<system>own<user>hello<answer>");
}

TEST_F(Rendering, GoesOnWithAnAnswerThatHasBegun) {
  add("user", "hello");
  add("assistant", "Good");
  EXPECT_EQ(rendered(), "<user>hello<assistant>Good");
  conversation_.begins_turn = true;
  EXPECT_EQ(rendered(), "<user>hello<assistant>Good<answer>");
  conversation_.begins_turn = false;
  conversation_.messages.back()["tool_calls"] = Json::array();
  try {
    rendered();
    ADD_FAILURE() << "a call needs its result";
  } catch (const FieldError& e) {
    EXPECT_EQ(e.field, "messages");
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
  }
}

TEST_F(Rendering, DescribesToolsWhereTheTemplateDoesNot) {
  add("user", "hello");
  add_tool();
  EXPECT_EQ(rendered(), "[1 tools]<user>hello<answer>");
  EXPECT_TRUE(warnings_.empty());
  with_tools_ = plain_;
  const std::string described = rendered();
  EXPECT_NE(described.find("\"name\":\"f\""), std::string::npos) << described;
  EXPECT_TRUE(described.ends_with("<user>hello<answer>")) << described;
  EXPECT_EQ(warnings_.size(), 1u);
  conversation_.tools.choice = Tools::Choice::none;
  EXPECT_EQ(rendered(), "<user>hello<answer>");
}

// A grammar holds from the first token on, so that nothing is left of the reasoning.
TEST_F(Rendering, EndsReasoningThatTheTemplateBegins) {
  plain_ = ChatTemplate::parse("{{ messages[0].content }}<answer><think>{{ '\\n' }}", "test");
  add("user", "hello");
  EXPECT_EQ(rendered(), "hello<answer><think>\n");
  conversation_.answers_at_once = true;
  EXPECT_EQ(rendered(), "hello<answer><think>\n</think>\n\n");
}

TEST_F(Rendering, NeedsATemplate) {
  add("user", "hello");
  plain_.reset();
  EXPECT_EQ(template_of(conversation_, {plain_, with_tools_, variables_, system_}), nullptr);
  add_tool();
  EXPECT_NE(template_of(conversation_, {plain_, with_tools_, variables_, system_}), nullptr);
}

TEST_F(Rendering, ContinuesADocumentWithoutTools) {
  Document document;
  add("user", "and?");
  EXPECT_EQ(render_after(document, conversation_).text, "and?");
  add_tool();
  EXPECT_THROW(render_after(document, conversation_), FieldError);
}

}  // namespace
}  // namespace snapkv::chat
