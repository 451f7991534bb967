// SPDX-License-Identifier: MIT
// ReasoningStream: separates the reasoning from the answer, for every way to cut the text into
// pieces.
#include "chat/reasoning.h"

#include <gtest/gtest.h>

#include <vector>

namespace snapkv::chat {
namespace {

/// "(reasoning and its tags)answer", for a text that comes in pieces of n bytes.
std::string shown(const std::string& prompt, const std::string& text, size_t n) {
  std::string all;
  bool was_reasoning = false;
  ReasoningStream stream(prompt, [&](std::string_view part, ReasoningStream::Part kind) {
    EXPECT_FALSE(part.empty());
    const bool is_reasoning = kind != ReasoningStream::Part::answer;
    if (is_reasoning != was_reasoning) all += is_reasoning ? "(" : ")";
    was_reasoning = is_reasoning;
    all += part;
  });
  for (size_t at = 0; at < text.size(); at += n) stream.push(text.substr(at, n));
  stream.finish();
  return all;
}

TEST(Reasoning, IsTheSameForAllPieces) {
  const struct {
    std::string prompt, text, expected;
  } cases[] = {
      {"", "Hello", "Hello"},
      {"", "", ""},
      {"", "<think>hm</think>\n\nHi", "(<think>hm</think>)\n\nHi"},
      {"", " \n<think></think>b", " \n(<think></think>)b"},
      // Tags in the middle of a text are text.
      {"", "a<think></think>b", "a<think></think>b"},
      {"", "Use the <thinking> tag", "Use the <thinking> tag"},
      {"", "{\"tag\": \"<think>\"}", "{\"tag\": \"<think>\"}"},
      {"", "<think>one</think>1<think>two</think>2", "(<think>one</think>)1<think>two</think>2"},
      {"", "<think>one</think>\n[THINK]", "(<think>one</think>)\n[THINK]"},
      {"", "<think>without end", "(<think>without end"},
      {"", "<thin ice> and </think>", "<thin ice> and </think>"},
      {"", "x < y <th", "x < y <th"},
      {"", "<thinking>a</think>b</thinking>c", "(<thinking>a</think>b</thinking>)c"},
      {"", "[THINK]a[/THINK]b", "([THINK]a[/THINK])b"},
      {"", "<think><think></think>a", "(<think><think></think>)a"},
      {"<|assistant|><think>\n", "hm</think>Hi", "(hm</think>)Hi"},
      {"<|assistant|><think>\n\n</think>\n\n", "Hi", "Hi"},
      {"<|assistant|><think>\n", "hm</think>Hi <reasoning>", "(hm</think>)Hi <reasoning>"},
      {"", "<<think>a</think>", "<<think>a</think>"},
      {"", "<|channel>thought\na<channel|>b", "(<|channel>thought\na<channel|>)b"},
      {"<|channel>thought\n<channel|>", "b", "b"},
      {"", "<|inner_prefix|>a<|inner_suffix|>b", "(<|inner_prefix|>a<|inner_suffix|>)b"},
      // Tags around the answer's text.
      {"", "<|START_THINKING|>a<|END_THINKING|>\n<|START_RESPONSE|>b <|c<|END_RESPONSE|>",
       "(<|START_THINKING|>a<|END_THINKING|>\n<|START_RESPONSE|>)b <|c(<|END_RESPONSE|>"},
      {"<|START_THINKING|><|END_THINKING|>", "<|START_RESPONSE|>b<|END_RESPONSE|>",
       "(<|START_RESPONSE|>)b(<|END_RESPONSE|>"},
      {"", "<think>a</think><response>b</response>", "(<think>a</think><response>)b(</response>"},
      {"", "<think>a</think> b</response>", "(<think>a</think>) b</response>"},
      {"", "<think>a</think>\n", "(<think>a</think>)\n"},
      {"", "<response>b</response>", "<response>b</response>"},
  };
  for (const auto& c : cases) {
    for (size_t n = 1; n <= c.text.size() + 1; ++n) {
      EXPECT_EQ(shown(c.prompt, c.text, n), c.expected) << c.text << " in pieces of " << n;
    }
  }
}

TEST(Reasoning, TellsTagsApart) {
  std::string tags;
  ReasoningStream stream("", [&](std::string_view part, ReasoningStream::Part kind) {
    if (kind == ReasoningStream::Part::tag) tags += std::string(part) + ",";
  });
  for (const char c : std::string("\n[THINK]b</think>[[/THINK]c<think>")) {
    stream.push(std::string(1, c));
  }
  stream.finish();
  EXPECT_EQ(tags, "[THINK],[/THINK],");
}

TEST(Reasoning, HoldsBackNoMoreThanATag) {
  std::string all;
  ReasoningStream stream("", [&](std::string_view part, ReasoningStream::Part) { all += part; });
  stream.push(" ");
  EXPECT_EQ(all, " ");
  stream.push("<thi");
  EXPECT_EQ(all, " ");
  stream.push("s>");
  EXPECT_EQ(all, " <this>");
  stream.push("<thi");
  EXPECT_EQ(all, " <this><thi");
}

TEST(Reasoning, EndsWhereThePromptHasBegunIt) {
  EXPECT_EQ(reasoning_end("<|assistant|><think>\n"), "</think>\n\n");
  EXPECT_EQ(reasoning_end("<|assistant|><think>"), "\n</think>\n\n");
  EXPECT_EQ(reasoning_end("<|assistant|>"), "");
  EXPECT_EQ(reasoning_end("<think>\n</think>"), "");
}

}  // namespace
}  // namespace snapkv::chat
