// SPDX-License-Identifier: MIT
// HarmonyStream: reasoning, calls and the answer of messages with channels, for every way to cut
// the text into pieces.
#include "chat/harmony.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chat/answer_parser.h"
#include "chat/answer_watch.h"
#include "chat/conversation.h"
#include "chat/harmony_prompt.h"
#include "chat/harmony_text.h"
#include "chat/tools.h"
#include "snapkv/chat.h"

namespace snapkv::chat {
namespace {

constexpr const char* kPrompt = "<|start|>user<|message|>Hi<|end|><|start|>assistant";

/// "(reasoning)answer[name arguments]", for a text that comes in pieces of n bytes.
std::string shown(const AnswerSyntax& syntax, const std::string& text, size_t n) {
  std::string all;
  Piece::Kind last = Piece::Kind::content;
  const auto close = [&](Piece::Kind next) {
    if (last == next && next != Piece::Kind::tool_begin) return;
    const bool in_call = last == Piece::Kind::tool_begin || last == Piece::Kind::tool_arguments;
    if (in_call && next != Piece::Kind::tool_arguments) all += "]";
    if (last == Piece::Kind::reasoning) all += ")";
    if (next == Piece::Kind::reasoning) all += "(";
    last = next;
  };
  const auto add = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      const bool begins = piece.kind == Piece::Kind::tool_begin;
      close(piece.kind);
      all += (begins ? "[" : "") + piece.text + (begins ? " " : "");
    }
  };
  AnswerParser parser(syntax);
  for (size_t at = 0; at < text.size(); at += n) add(parser.push(text.substr(at, n)));
  add(parser.finish());
  close(Piece::Kind::content);
  return all;
}

AnswerSyntax syntax_of(const std::string& prompt) {
  AnswerSyntax syntax;
  syntax.has_reasoning = syntax.is_harmony = true;
  syntax.prompt_end = prompt;
  syntax.tools = ToolFormat::harmony;
  syntax.functions = {{"add", Json{{"type", "object"}}}};
  return syntax;
}

TEST(Harmony, IsTheSameForAllPieces) {
  const struct {
    std::string text, expected;
  } cases[] = {
      {"<|channel|>final<|message|>Hello <b> & <|x", "Hello <b> & <|x"},
      {"<|channel|>analysis<|message|>Let me\n think<|end|><|start|>assistant<|channel|>final"
       "<|message|>Hi<|return|>",
       "(Let me\n think)Hi"},
      {"<|channel|>analysis<|message|>Add<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.add <|constrain|>json<|message|>{\"a\": [1, 2]}<|call|>",
       "(Add)[add {\"a\": [1, 2]}]"},
      {" to=functions.add<|channel|>commentary json<|message|>{\"a\": 1}<|call|>",
       "[add {\"a\": 1}]"},
      {"<|channel|>commentary to=functions.add<|message|><|call|>", "[add {}]"},
      {"<|channel|>commentary<|message|>I will add.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.add <|constrain|>json<|message|>{}<|end|><|start|>assistant to=functions.b"
       "<|channel|>commentary json<|message|>{\"c\": \"<|en\"}<|call|>",
       "I will add.[add {}][b {\"c\": \"<|en\"}]"},
      // a tool that nobody has offered
      {" to=python<|channel|>analysis<|message|>1 + 1<|call|>", "(1 + 1)"},
      // a result of the model's own
      {"<|channel|>commentary to=functions.add<|message|>{}<|end|><|start|>functions.add "
       "to=assistant"
       "<|channel|>commentary<|message|>3<|end|><|start|>assistant<|channel|>final<|message|>3",
       "[add {}]"},
      {"<|channel|>final<|message|>Hi<|end|><|start|>user<|message|>Hello<|end|>", "Hi"},
      {"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b"
       "<|end|><|start|>assistant<|channel|>final<|message|>c<|end|><|start|>assistant<|channel|>"
       "final<|message|>d",
       "(a\n\nb)c\n\nd"},
      {"<|channel|>analysis<|message|>no end<|start|>assistant<|channel|>final<|message|>e",
       "(no end)e"},
      {"<|channel|>anal", ""},  // broken off
      {"<|channel|>commentary to=functions.add<|message|>{\"a\": ", "[add {\"a\": ]"},
      // without a header, as other models write
      {"plain", "plain"},
      {"{\"name\": \"add\", \"arguments\": {\"b\": 2}}", "[add {\"b\": 2}]"},
      {"{\"name\": \"other\"}", "{\"name\": \"other\"}"},
  };
  for (const auto& c : cases) {
    for (size_t n = 1; n <= c.text.size() + 1; ++n) {
      EXPECT_EQ(shown(syntax_of(kPrompt), c.text, n), c.expected)
          << c.text << " in pieces of " << n;
    }
  }
}

TEST(Harmony, AnAnswerGoesOnWithAMessageThatHasBegun) {
  const std::string begun = std::string(kPrompt) + "<|channel|>final<|message|>It";
  EXPECT_EQ(shown(syntax_of(begun), " is<|return|>", 1), " is");
  const std::string thought = std::string(kPrompt) + "<|channel|>analysis<|message|>";
  EXPECT_EQ(shown(syntax_of(thought), "a<|end|><|start|>assistant<|channel|>final<|message|>b", 3),
            "(a)b");
}

TEST(Harmony, ACallGoesOnWhereThePromptHasBegunIt) {
  const std::string call = std::string(kPrompt) + "<|channel|>commentary to=functions.";
  const std::string text = R"({"a": {"b": 1}})";
  for (size_t n = 1; n <= text.size(); ++n) {
    EXPECT_EQ(shown(syntax_of(call + "add <|constrain|>json<|message|>"), text, n),
              "[add " + text + "]");
    EXPECT_EQ(shown(syntax_of(call), "add json" + text, n), "[add " + text + "]");
  }
}

TEST(Harmony, WithoutFunctionsThereAreNoCalls) {
  AnswerSyntax syntax = syntax_of(kPrompt);
  syntax.tools = ToolFormat::none;
  syntax.functions.clear();
  EXPECT_EQ(shown(syntax,
                  "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary "
                  "to=functions.add <|constrain|>json<|message|>{}<|call|>",
                  7),
            "(a){}");
}

TEST(Harmony, NothingFollowsTheOneCall) {
  AnswerSyntax syntax = syntax_of(kPrompt);
  syntax.one_call = true;
  AnswerParser parser(syntax);
  (void)parser.push("<|channel|>commentary to=functions.add<|message|>{}");
  EXPECT_FALSE(parser.ended());
  (void)parser.push("<|call|><|start|>assistant<|channel|>final<|message|>more");
  EXPECT_TRUE(parser.ended());
}

TEST(Harmony, WithoutReasoningApartItIsPartOfTheAnswer) {
  AnswerSyntax syntax = syntax_of(kPrompt);
  syntax.has_reasoning = false;
  EXPECT_EQ(shown(syntax,
                  "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final"
                  "<|message|>b",
                  5),
            "a\n\nb");
}

TEST(Harmony, TemplatesAreKnownByTheirMarks) {
  EXPECT_EQ(tool_format("{{ '<|start|>assistant<|channel|>final<|message|>' }} {{ tools }}"),
            ToolFormat::harmony);
  EXPECT_FALSE(writes_harmony("<|start|>assistant<|message|>"));
  EXPECT_TRUE(writes_harmony(ChatTemplate::built_in("gpt-oss").source()));
}

// Where the grammar of a call begins to hold.
TEST(Harmony, IsWatchedForCalls) {
  const auto begun = [](const std::vector<std::string>& parts) {
    AnswerSyntax syntax = syntax_of(kPrompt);
    syntax.any_form = true;
    AnswerWatch watch(syntax);
    std::vector<std::string> all;
    for (const std::string& part : parts) {
      watch.push(part);
      all.push_back(watch.begun_call().value_or("-"));
    }
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(begun({"<|channel|>", "commentary", " to=", "functions", ".", "add", " <|constrain|>",
                   "json", "<|message|>", "{"}),
            (Texts{"-", "-", "-", "-", "to=functions.", "-", "-", "-", "add<|message|>", "-"}));
  EXPECT_EQ(begun({" to=functions.ad", "d<|channel|>commentary json<|message|>{"}),
            (Texts{"to=functions.ad", "add<|message|>{"}));
  EXPECT_EQ(begun({"<|channel|>commentary to=functions.other<|message|>", "{"}),
            (Texts{"to=functions.other<|message|>", "-"}));
  EXPECT_EQ(begun({"<|channel|>analysis<|message|>to=functions.", "add"}), (Texts{"-", "-"}));
  EXPECT_EQ(begun({"<|channel|>final<|message|>{\"name\": \"add\", \"arguments\":", " {"}),
            (Texts{"add:", "-"}));
}

TEST(Harmony, EndsWhereTheModelInventsAResult) {
  AnswerWatch watch(syntax_of(kPrompt));
  watch.push("<|channel|>commentary to=functions.add<|message|>{}<|end|><|start|>functions.add");
  EXPECT_FALSE(watch.ended());
  watch.push(" to=assistant<|channel|>commentary<|message|>");
  EXPECT_TRUE(watch.ended());
}

// The text of terminals and pipes.
TEST(Harmony, IsShownAsOtherModelsWrite) {
  const std::string answer =
      "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Hi\n";
  for (size_t n = 1; n <= answer.size(); ++n) {
    std::string reasoning, all;
    HarmonyText text("", [&](std::string_view part, bool is_reasoning) {
      all += part;
      if (is_reasoning) reasoning += part;
    });
    for (size_t at = 0; at < answer.size(); at += n) text.push(answer.substr(at, n));
    text.finish();
    EXPECT_EQ(reasoning, "<think>\nHm\n</think>\n\n");
    EXPECT_EQ(all, "<think>\nHm\n</think>\n\nHi\n");
  }
  EXPECT_EQ(harmony_answer("", answer), "Hi\n");
  EXPECT_EQ(harmony_shown("", "<|channel|>analysis<|message|>a"), "<think>\na\n</think>\n\n");
  EXPECT_EQ(harmony_shown("", "Plain <"), "Plain <");
  EXPECT_EQ(harmony_answer("", "<"), "<");
  const std::string header = "<|start|>assistant<|channel|>analysis<|message|>";
  EXPECT_EQ(harmony_header("<|start|>user<|message|>x<|end|>" + header), header);
  EXPECT_EQ(harmony_answer(header, "a<|end|><|start|>assistant<|channel|>final<|message|>b"), "b");
  EXPECT_EQ(harmony_header(kPrompt), "<|start|>assistant");
  EXPECT_EQ(harmony_header("<|start|>assistant is a mark<|im_start|>assistant\n"), "");
}

/// Shows what gpt-oss's template shows, and loses what that loses.
class HarmonyPrompt : public ::testing::Test {
 protected:
  std::string rendered() {
    warnings_.clear();
    const Json variables = Json::object();
    return render(conversation_, {template_, template_, variables, ""}, warnings_).text;
  }
  void add(const Json& message) { conversation_.messages.push_back(message); }
  void add_tool(const std::string& name) {
    conversation_.tools.list.push_back(
        {{"type", "function"},
         {"function", {{"name", name}, {"parameters", {{"type", "object"}}}}}});
  }
  static Json call(const std::string& id, const std::string& name) {
    return {{"id", id}, {"function", {{"name", name}, {"arguments", {{"n", 1}}}}}};
  }

  Conversation conversation_;
  std::optional<ChatTemplate> template_ = ChatTemplate::parse(
      "{{ reasoning_effort }}{% for t in tools %}{{ '#' + t.function.description }}{% endfor %}"
      "{% if messages[0].role == 'system' %}{{ '!' + messages[0].content }}{% endif %}"
      "{% for m in messages %}"
      "{% if m.tool_calls %}{% if m.content and m.thinking %}{{ raise_exception('both') }}{% endif "
      "%}"
      "{% if m.thinking %}{{ '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking"
      " + '<|end|>' }}{% endif %}"
      "{{ '<|start|>assistant to=functions.' + m.tool_calls[0].function.name"
      " + '<|channel|>commentary json<|message|>' + (m.tool_calls[0].function.arguments | tojson)"
      " + '<|call|>' }}"
      "{% elif m.role == 'assistant' %}{{ '<|start|>assistant<|channel|>final<|message|>'"
      " + m.content + '<|end|>' }}"
      "{% elif m.role != 'system' %}{{ '<|start|>' + m.role + '<|message|>' + m.content"
      " + '<|end|>' }}{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}",
      "test");
  std::vector<std::string> warnings_;
};

TEST_F(HarmonyPrompt, HasEachCallInAMessageWithItsResultAfterIt) {
  add({{"role", "user"}, {"content", "Go"}});
  add({{"role", "assistant"},
       {"content", "I look."},
       {"reasoning_content", "Both?"},
       {"tool_calls", Json::array({call("1", "a"), call("2", "b")})}});
  add({{"role", "tool"}, {"tool_call_id", "2"}, {"content", "of b"}});
  add({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "of a"}});
  const std::string to_a =
      "<|start|>assistant to=functions.a<|channel|>commentary json<|message|>"
      "{\"n\": 1}<|call|><|start|>tool<|message|>of a<|end|>";
  const std::string to_b =
      "<|start|>assistant to=functions.b<|channel|>commentary json<|message|>"
      "{\"n\": 1}<|call|><|start|>tool<|message|>of b<|end|>";
  const std::string all =
      "<|start|>user<|message|>Go<|end|><|start|>assistant<|channel|>analysis<|message|>Both?\n\n"
      "I look.<|end|>" +
      to_a + to_b + "<|start|>assistant";
  EXPECT_EQ(rendered(), all);
  // results without names are in the calls' order
  for (size_t i = 2; i < 4; ++i) conversation_.messages[i].erase("tool_call_id");
  conversation_.messages[2]["content"] = "of a";
  conversation_.messages[3]["content"] = "of b";
  EXPECT_EQ(rendered(), all);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(HarmonyPrompt, LosesNoSystemMessage) {
  add({{"role", "system"}, {"content", "Be brief."}});
  add({{"role", "user"}, {"content", "Hi"}});
  add({{"role", "system"}, {"content", "Now long."}});
  add({{"role", "user"}, {"content", "Go"}});
  EXPECT_EQ(rendered(),
            "!Be brief.<|start|>user<|message|>Hi\n\nNow long.\n\nGo<|end|><|start|>assistant");
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(HarmonyPrompt, HasToolsAndEffortsThatTheTemplateTakes) {
  add({{"role", "user"}, {"content", "Hi"}});
  add_tool("f");
  conversation_.template_variables["reasoning_effort"] = "minimal";
  EXPECT_EQ(rendered(), "low#<|start|>user<|message|>Hi<|end|><|start|>assistant");
  const Json tools = harmony_tools(Json::parse(R"([{"function": {"name": "g", "parameters":
    {"properties": {"n": {"enum": [1, 2], "default": 1}, "m": {"default": 1}}}}}])"));
  const Json& properties = tools[0]["function"]["parameters"]["properties"];
  EXPECT_EQ(properties["n"]["default"], "1");
  EXPECT_EQ(properties["m"]["default"], 1);
}

TEST_F(HarmonyPrompt, OpensTheMessageThatAGrammarHoldsIn) {
  const std::string begin = "<|start|>user<|message|>Hi<|end|><|start|>assistant";
  add({{"role", "user"}, {"content", "Hi"}});
  conversation_.answers_at_once = true;
  EXPECT_EQ(rendered(), begin + "<|channel|>final<|message|>");
  add_tool("f");
  conversation_.tools.choice = Tools::Choice::required;
  const std::string call = "<|channel|>commentary to=functions.";
  const std::string rest = "f <|constrain|>json<|message|>";
  EXPECT_EQ(rendered(), "#" + begin + call + rest);
  add_tool("g");
  EXPECT_EQ(rendered(), "##" + begin + call);
  conversation_.tools.function = "f";
  EXPECT_EQ(rendered(), "##" + begin + call + rest);
  add({{"role", "assistant"}, {"content", "Well"}});
  EXPECT_EQ(rendered(), "##" + begin + "<|channel|>final<|message|>Well<|end|><|start|>assistant" +
                            call + rest);
  conversation_.tools.list.clear();
  EXPECT_EQ(rendered(), begin + "<|channel|>final<|message|>Well");
}

}  // namespace
}  // namespace snapkv::chat
