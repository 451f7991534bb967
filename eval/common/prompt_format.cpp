// SPDX-License-Identifier: MIT
#include "eval/common/prompt_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace snapkv::eval {
namespace {

// What templates take for the present, so that a prompt is the same every day: 2024-07-01.
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

// Bytes [begin, end) of what a template made.
RenderedChat part_of_chat(const RenderedChat& chat, size_t begin, size_t end) {
  RenderedChat out;
  out.text = chat.text.substr(begin, end - begin);
  for (const ByteRange& range : chat.input) {
    const size_t first = std::max(range.begin, begin), last = std::min(range.end, end);
    if (first < last) out.input.push_back({first - begin, last - begin});
  }
  return out;
}

// Adds text that is data, as messages are.
void append_input(RenderedChat& chat, const std::string& text) {
  if (text.empty()) return;
  chat.input.push_back({chat.text.size(), chat.text.size() + text.size()});
  chat.text += text;
}

// A character that the question neither begins nor ends with, white space at its ends left out or
// not: a template may trim messages.
std::string unlike_question(const std::string& question) {
  const size_t first = question.find_first_not_of(" \t\r\n");
  const size_t last = question.find_last_not_of(" \t\r\n");
  for (const char c : {'x', 'y', 'z'}) {
    if (first == std::string::npos || (question[first] != c && question[last] != c)) return {c};
  }
  return "w";
}

// Sets which tokens of the prompt are the question, which is bytes `question` of `whole`.
void find_question(const Model& model, const RenderedChat& whole, ByteRange question,
                   Prompt& prompt) {
  const auto before = model.tokenize(part_of_chat(whole, 0, question.begin));
  const auto after = model.tokenize(part_of_chat(whole, question.end, whole.text.size()), false);
  prompt.n_context = common_beginning(before, prompt.tokens);
  const int64_t n_tokens = std::ssize(prompt.tokens);
  prompt.question_end =
      std::max(n_tokens - common_end(after, prompt.tokens), prompt.n_context);
}

}  // namespace

PromptFormat PromptFormat::plain() { return {}; }

PromptFormat PromptFormat::chat(ChatTemplate chat_template, Json variables, std::string system) {
  PromptFormat format;
  format.chat_ = Chat{std::move(chat_template), std::move(variables), std::move(system)};
  return format;
}

RenderedChat PromptFormat::render(const std::string& user) const {
  Json variables = chat_->variables;
  Json messages = Json::array();
  if (!chat_->system.empty()) messages.push_back({{"role", "system"}, {"content", chat_->system}});
  messages.push_back({{"role", "user"}, {"content", user}});
  variables["messages"] = std::move(messages);
  variables["add_generation_prompt"] = true;
  return chat_->chat_template.render(variables.dump(), kRenderedAt);
}

Prompt PromptFormat::make(const Model& model, const PromptText& text) const {
  if (!is_chat()) {
    Prompt prompt = split_prompt(model, text.context + text.question + text.lead,
                                 text.context.size());
    RenderedChat lead;
    append_input(lead, text.lead);
    prompt.question_end -= common_end(model.tokenize(lead, false), prompt.tokens);
    return prompt;
  }
  for (const std::string* part : {&text.context, &text.question, &text.lead}) {
    if (to_utf8(*part) == *part) continue;
    fail(ErrorCode::kUsage, "a chat's messages must be UTF-8, the text of this prompt is not");
  }
  RenderedChat whole = render(text.context + text.question);
  const RenderedChat other = render(text.context + unlike_question(text.question));
  const int64_t n_shown = std::ssize(whole.text);
  const int64_t begin = common_beginning(whole.text, other.text);
  const int64_t end = std::max(begin, n_shown - common_end(whole.text, other.text));
  if (begin == n_shown) {
    fail(ErrorCode::kUsage, "{}: this chat template does not show the user's message",
         chat_->chat_template.name());
  }
  append_input(whole, text.lead);
  Prompt prompt;
  prompt.tokens = model.tokenize(whole);
  find_question(model, whole, {static_cast<size_t>(begin), static_cast<size_t>(end)}, prompt);
  prompt.text = std::move(whole.text);
  return prompt;
}

std::string PromptFormat::id() const {
  if (!is_chat()) return {};
  Fnv1a hash;
  for (const std::string& text :
       {chat_->chat_template.source(), to_line(chat_->variables), chat_->system}) {
    hash.add(static_cast<uint64_t>(text.size()));
    hash.add(text);
  }
  return fmt::format("chat {:016x}", hash.value());
}

Json PromptFormat::record() const {
  if (!is_chat()) return {};
  return {{"id", id()}, {"variables", chat_->variables}, {"system", chat_->system}};
}

}  // namespace snapkv::eval
