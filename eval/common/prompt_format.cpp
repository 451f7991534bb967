// SPDX-License-Identifier: MIT
#include "eval/common/prompt_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include "base/chat_part.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

namespace snapkv::eval {
namespace {

// The time that templates take as the present, so that a prompt is the same every day: 2024-07-01.
constexpr std::time_t kRenderedAt = 1'719'835'200;

template <typename Sequence>
int64_t common_beginning(const Sequence& a, const Sequence& b) {
  const auto n = std::min(std::ssize(a), std::ssize(b));
  return std::mismatch(a.begin(), a.begin() + n, b.begin()).first - a.begin();
}

template <typename Sequence>
int64_t common_end(const Sequence& a, const Sequence& b) {
  const auto n = std::min(std::ssize(a), std::ssize(b));
  return std::mismatch(a.rbegin(), a.rbegin() + n, b.rbegin()).first - a.rbegin();
}

// Appends text that is data, like messages.
void append_input(RenderedChat& chat, const std::string& text) {
  if (text.empty()) return;
  chat.input.push_back({chat.text.size(), chat.text.size() + text.size()});
  chat.text += text;
}

// A character with which the question neither begins nor ends, with or without the white space at
// its ends, since a template may trim messages.
std::string unlike_question(const std::string& question) {
  const size_t first = question.find_first_not_of(" \t\r\n");
  const size_t last = question.find_last_not_of(" \t\r\n");
  for (const char c : {'x', 'y', 'z'}) {
    if (first == std::string::npos || (question[first] != c && question[last] != c)) return {c};
  }
  return "w";
}

void check_utf8(const std::string& text) {
  if (to_utf8(text) == text) return;
  fail(ErrorCode::kUsage, "a chat's messages must be UTF-8, the text of this prompt is not");
}

// Finds which tokens of the prompt are the question, given as bytes `question` of `whole`.
void find_question(const Model& model, const RenderedChat& whole, ByteRange question,
                   Prompt& prompt) {
  const auto before = model.tokenize(chat_part(whole, 0, question.begin));
  const auto after = model.tokenize(chat_part(whole, question.end), false);
  prompt.n_context = common_beginning(before, prompt.tokens);
  const int64_t n_tokens = std::ssize(prompt.tokens);
  prompt.question_end = std::max(n_tokens - common_end(after, prompt.tokens), prompt.n_context);
}

}  // namespace

PromptFormat PromptFormat::plain() { return {}; }

PromptFormat PromptFormat::chat(ChatTemplate chat_template, Json variables, std::string system) {
  PromptFormat format;
  format.chat_ = Chat{std::move(chat_template), std::move(variables), std::move(system)};
  return format;
}

RenderedChat PromptFormat::render(const std::vector<std::string>& contents) const {
  Json variables = chat_->variables;
  Json messages = Json::array();
  if (!chat_->system.empty()) messages.push_back({{"role", "system"}, {"content", chat_->system}});
  for (size_t i = 0; i < contents.size(); ++i) {
    check_utf8(contents[i]);
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", contents[i]}});
  }
  variables["messages"] = std::move(messages);
  variables["add_generation_prompt"] = true;
  return chat_->chat_template.render(variables.dump(), kRenderedAt);
}

RenderedChat PromptFormat::render_prompt(const PromptText& text) const {
  check_utf8(text.lead);
  RenderedChat chat = render({text.context + text.question});
  append_input(chat, text.lead);
  return chat;
}

int64_t PromptFormat::count_tokens(const Model& model, const PromptText& text) const {
  if (is_chat()) return std::ssize(model.tokenize(render_prompt(text)));
  return std::ssize(model.tokenize(text.context + text.question + text.lead, true, false));
}

Prompt PromptFormat::make(const Model& model, const PromptText& text) const {
  if (!is_chat()) {
    Prompt prompt =
        split_prompt(model, text.context + text.question + text.lead, text.context.size());
    RenderedChat lead;
    append_input(lead, text.lead);
    prompt.question_end -= common_end(model.tokenize(lead, false), prompt.tokens);
    return prompt;
  }
  RenderedChat whole = render_prompt(text);
  const RenderedChat other = render({text.context + unlike_question(text.question)});
  const std::string_view shown(whole.text.data(), whole.text.size() - text.lead.size());
  const std::string_view other_shown(other.text);
  const int64_t begin = common_beginning(shown, other_shown);
  const int64_t end = std::max(begin, std::ssize(shown) - common_end(shown, other_shown));
  if (shown == other_shown) {
    fail(ErrorCode::kUsage, "{}: this chat template does not show the user's message",
         chat_->chat_template.name());
  }
  Prompt prompt;
  prompt.tokens = model.tokenize(whole);
  find_question(model, whole, {static_cast<size_t>(begin), static_cast<size_t>(end)}, prompt);
  prompt.text = std::move(whole.text);
  return prompt;
}

Turn PromptFormat::make_turn(const Model& model, std::vector<std::string> contents,
                             const std::string& lead) const {
  SNAPKV_CHECK(is_chat() && contents.size() >= 3 && contents.size() % 2 == 1);
  check_utf8(lead);
  std::string conversation;
  for (const std::string& content : contents) conversation += content + "\n";
  std::string& answer = contents[contents.size() - 2];
  answer = unused_mark("snapkv-answer", conversation);
  std::optional<RenderedChat> part = chat_after(render(contents), answer);
  if (!part) {
    fail(ErrorCode::kUsage,
         "{}: this chat template leaves out earlier answers, so that no conversation continues",
         chat_->chat_template.name());
  }
  append_input(*part, lead);
  Turn turn;
  turn.tokens = model.tokenize(*part, /*add_bos=*/false);
  turn.text = std::move(part->text);
  turn.completes_answer = true;
  return turn;
}

std::string PromptFormat::id() const {
  if (!is_chat()) return {};
  Hash64 hash;
  for (const std::string& text :
       {chat_->chat_template.source(), to_line(chat_->variables), chat_->system}) {
    hash.add(static_cast<uint64_t>(text.size()));
    hash.add(text);
  }
  return fmt::format("chat {:016x}", hash.value());
}

std::string PromptFormat::with_id(const std::string& item) const {
  return is_chat() ? item + " " + id() : item;
}

Json PromptFormat::record() const {
  if (!is_chat()) return {};
  return {{"id", id()}, {"variables", chat_->variables}, {"system", chat_->system}};
}

}  // namespace snapkv::eval
