// SPDX-License-Identifier: MIT
// PromptFormat: plain prompts are those of split_prompt, and in a chat the tokens of the question
// are found whatever the template writes around it.
#include "eval/common/prompt_format.h"

#include <gtest/gtest.h>

#include "tests/eval/needle_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::eval {
namespace {

const PromptText kText = {"The secret number of Rome is 48213.\n",
                          "\nQuestion: What is the secret number of Rome?\nAnswer:", " It is"};

// The text of tokens [begin, end) of a prompt, with control tokens spelled out.
std::string text_of(const Model& model, const Prompt& prompt, int64_t begin, int64_t end) {
  std::string text;
  for (int64_t i = begin; i < end; ++i) text += model.piece(prompt.tokens[i], true);
  return text;
}
std::string question_of(const Model& model, const Prompt& prompt) {
  return text_of(model, prompt, prompt.n_context, prompt.question_end);
}

PromptFormat chat_format(const std::string& source, const std::string& system = "") {
  return PromptFormat::chat(ChatTemplate::parse(source, "test"), Json::object(), system);
}

constexpr const char* kTrims =
    "{% for m in messages %}<{{ m.role }}> {{ m.content | trim }} <end>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

TEST(PromptFormat, PlainIsTheTextAsItIs) {
  const auto model = needle_model();
  const Prompt prompt = PromptFormat::plain().make(*model, kText);
  const std::string whole = kText.context + kText.question + kText.lead;
  const Prompt split = split_prompt(*model, whole, kText.context.size());
  EXPECT_EQ(prompt.text, whole);
  EXPECT_EQ(prompt.tokens, split.tokens);
  EXPECT_EQ(prompt.n_context, split.n_context);
  EXPECT_EQ(split.question_end, std::ssize(split.tokens));
  EXPECT_EQ(question_of(*model, prompt), kText.question);
  EXPECT_EQ(PromptFormat::plain().id(), "");
  EXPECT_TRUE(PromptFormat::plain().record().is_null());
}

TEST(PromptFormat, ChatEndsWithTheLead) {
  const auto model = needle_model();
  const PromptFormat format =
      PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "Be brief.");
  const Prompt prompt = format.make(*model, kText);
  EXPECT_EQ(prompt.text, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n" +
                             kText.context + kText.question +
                             "<|im_end|>\n<|im_start|>assistant\n" + kText.lead);
  EXPECT_EQ(question_of(*model, prompt), kText.question);
  EXPECT_EQ(text_of(*model, prompt, prompt.question_end, std::ssize(prompt.tokens)),
            "<|im_end|>\n<|im_start|>assistant\n" + kText.lead);
}

TEST(PromptFormat, FindsAQuestionThatTheTemplateTrims) {
  const auto model = needle_model();
  const PromptFormat format = chat_format(kTrims);
  // Beginnings and ends that could merge with the placeholder.
  for (const std::string question : {"\n\nxyz?  ", "\n\nx y z w\n", " \u00e9t\u00e9 \u00e0", "w"}) {
    const Prompt prompt = format.make(*model, {kText.context, question, ""});
    std::string wanted = question;
    wanted.erase(wanted.find_last_not_of(" \n") + 1);
    const std::string found = question_of(*model, prompt);
    // A token that spans the boundary belongs to the question.
    EXPECT_NE(found.find(wanted), std::string::npos) << found;
    EXPECT_LE(found.size(), wanted.size() + 8) << found;
    const std::string before = text_of(*model, prompt, 0, prompt.n_context);
    EXPECT_NE(before.find("48213"), std::string::npos) << before;
    EXPECT_EQ(before.find(wanted), std::string::npos) << before;
  }
}

TEST(PromptFormat, ControlTokensInTextsStayText) {
  const auto model = needle_model();
  const PromptFormat format = chat_format(
      "{{ bos_token }}{% for m in messages %}{{ m.content }}"
      "{% endfor %}");
  const int32_t bos = model->tokenizer().special().bos;
  ASSERT_GE(bos, 0);
  const std::string spelled = model->tokenizer().token_text(bos);
  const Prompt prompt = format.make(*model, {"A " + spelled, " B " + spelled, " C " + spelled});
  EXPECT_LE(std::count(prompt.tokens.begin(), prompt.tokens.end(), bos), 1);
}

TEST(PromptFormat, CountsWhatItMakes) {
  const auto model = needle_model();
  for (const PromptFormat& format : {PromptFormat::plain(), chat_format(kTrims, "Be brief.")}) {
    EXPECT_EQ(format.count_tokens(*model, kText), std::ssize(format.make(*model, kText).tokens));
  }
}

TEST(PromptFormat, AMessageMayBeTheContextAlone) {
  const auto model = needle_model();
  for (const char* source : {kTrims, "{{ messages[0].content }}"}) {
    const Prompt prompt = chat_format(source).make(*model, {"Say hello.", "", ""});
    EXPECT_NE(prompt.text.find("Say hello."), std::string::npos);
    EXPECT_GE(prompt.question_end, prompt.n_context);
  }
}

TEST(PromptFormat, ATurnIsWhatTheTemplateAddsAfterAnAnswer) {
  const auto model = needle_model();
  const PromptFormat format =
      PromptFormat::chat(ChatTemplate::built_in("chatml"), Json::object(), "Be brief.");
  const std::string answer = " It is 48213.";
  const Turn turn = format.make_turn(
      *model, {kText.context + kText.question, kText.lead + " a mark", "Where is it?"}, "In");
  EXPECT_EQ(turn.text,
            "<|im_end|>\n<|im_start|>user\nWhere is it?<|im_end|>\n<|im_start|>assistant\nIn");
  // Together with the prompt and the answer it is the conversation that the template writes.
  const Json messages = {{{"role", "system"}, {"content", "Be brief."}},
                         {{"role", "user"}, {"content", kText.context + kText.question}},
                         {{"role", "assistant"}, {"content", kText.lead + answer}},
                         {{"role", "user"}, {"content", "Where is it?"}}};
  const RenderedChat whole = ChatTemplate::built_in("chatml").render(
      Json{{"messages", messages}, {"add_generation_prompt", true}}.dump());
  EXPECT_EQ(format.make(*model, kText).text + answer + turn.text, whole.text + "In");
  // The answer may contain the placeholder that stands for it.
  const Turn other = format.make_turn(*model, {"snapkv-answer", "a", "Where is it?"}, "In");
  EXPECT_EQ(other.tokens, turn.tokens);
}

TEST(PromptFormat, IdsTellFormatsApart) {
  const std::string id = chat_format(kTrims).id();
  EXPECT_EQ(id, chat_format(kTrims).id());
  EXPECT_NE(id, chat_format(kTrims, "Be brief.").id());
  EXPECT_NE(id, chat_format("{{ messages[0].content }}").id());
  EXPECT_NE(id, PromptFormat::chat(ChatTemplate::parse(kTrims, "test"), {{"a", 1}}, "").id());
  EXPECT_EQ(PromptFormat::plain().with_id("needle 1"), "needle 1");
  EXPECT_EQ(chat_format(kTrims).with_id("needle 1"), "needle 1 " + id);
  EXPECT_EQ(chat_format(kTrims, "Be brief.").record().at("system"), "Be brief.");
}

TEST(PromptFormat, ThePresentIsAlwaysTheSame) {
  const Prompt prompt = chat_format("{{ strftime_now('%Y') }} {{ messages[0].content }}")
                            .make(*needle_model(), kText);
  EXPECT_TRUE(prompt.text.starts_with("2024 ")) << prompt.text;
}

TEST(PromptFormat, SaysWhatCantWork) {
  const auto model = needle_model();
  test::expect_error(ErrorCode::kUsage, {"does not show"},
                     [&] { chat_format("Hello").make(*model, kText); });
  test::expect_error(ErrorCode::kUsage, {"leaves out"}, [&] {
    chat_format("{{ messages[-1].content }}").make_turn(*model, {"a", "b", "c"}, "");
  });
  test::expect_error(ErrorCode::kUsage, {"UTF-8"}, [&] {
    chat_format(kTrims).make(*model, {"caf\xe9", " What?", ""});
  });
}

}  // namespace
}  // namespace snapkv::eval
