// SPDX-License-Identifier: MIT
#include "chat/reasoning.h"

#include <algorithm>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

struct Tags {
  std::string_view opening, closing;
  std::string_view answer_opening = {}, answer_closing = {};
  bool needs_reasoning = true;  ///< the answer's tags stand only after reasoning
};
constexpr Tags kTags[] = {
    {"<think>", "</think>", "<response>", "</response>"},  // the answer's are Granite 3's
    {"<thinking>", "</thinking>"},
    {"<reasoning>", "</reasoning>"},
    {"[THINK]", "[/THINK]"},
    {"<seed:think>", "</seed:think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", false},
    {"<|channel>thought", "<channel|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"}};

std::string_view without_spaces_after(std::string_view prompt) {
  return prompt.substr(0, prompt.find_last_not_of(" \n") + 1);  // npos + 1 is 0
}

/// The tags of which the prompt ends in the opening one; null: none.
const Tags* open_tags(std::string_view prompt) {
  for (const Tags& tags : kTags) {
    if (without_spaces_after(prompt).ends_with(tags.opening)) return &tags;
  }
  return nullptr;
}

}  // namespace

std::string reasoning_end(std::string_view prompt) {
  const Tags* const tags = open_tags(prompt);
  if (tags == nullptr) return "";
  return (prompt.ends_with('\n') ? "" : "\n") + std::string(tags->closing) + "\n\n";
}

ReasoningStream::ReasoningStream(std::string_view prompt, Show show) : show_(std::move(show)) {
  if (const Tags* const tags = open_tags(prompt)) {
    closing_ = tags->closing;
    answer_opening_ = tags->answer_opening;
    answer_closing_ = tags->answer_closing;
    state_ = State::reasoning;
  }
}

void ReasoningStream::show(size_t size, Part part) {
  if (size > 0) show_(std::string_view(held_).substr(0, size), part);
  held_.erase(0, size);
}

void ReasoningStream::push(std::string_view text) {
  held_ += text;
  if (state_ == State::start) look_for_opening();
  if (state_ == State::reasoning) look_for_closing();
  if (state_ == State::answer_start) look_for_answer_opening();
  if (state_ == State::answer) look_for_answer_closing();
}

void ReasoningStream::look_for_opening() {
  show(std::min(held_.find_first_not_of(kSpaces), held_.size()), Part::answer);
  if (held_.empty()) return;
  bool may_come = false;
  for (const Tags& tags : kTags) {
    may_come = may_come || tags.opening.starts_with(held_);
    const bool has_answer = !tags.needs_reasoning;
    may_come = may_come || (has_answer && tags.answer_opening.starts_with(held_));
    const bool is_answer = has_answer && held_.starts_with(tags.answer_opening);
    if (!is_answer && !held_.starts_with(tags.opening)) continue;
    show(is_answer ? tags.answer_opening.size() : tags.opening.size(), Part::tag);
    closing_ = tags.closing;
    answer_opening_ = tags.answer_opening;
    answer_closing_ = tags.answer_closing;
    state_ = is_answer ? State::answer : State::reasoning;
    return;
  }
  if (!may_come) state_ = State::answer;
}

void ReasoningStream::look_for_answer_opening() {
  const size_t at = held_.find_first_not_of(kSpaces);
  if (at == std::string::npos) return;
  const std::string_view rest = std::string_view(held_).substr(at);
  if (!answer_opening_.empty() && rest.starts_with(answer_opening_)) {
    show(at + answer_opening_.size(), Part::tag);
  } else if (!answer_opening_.empty() && answer_opening_.starts_with(rest)) {
    return;
  } else if (!answer_opening_.empty()) {
    answer_closing_.clear();  // then the other tag is text too
  }
  state_ = State::answer;
}

void ReasoningStream::look_for_answer_closing() {
  if (!answer_closing_.empty()) {
    if (const size_t at = held_.find(answer_closing_); at != std::string::npos) {
      show(at, Part::answer);
      show(answer_closing_.size(), Part::tag);
      answer_closing_.clear();
    }
  }
  const size_t n_held = answer_closing_.empty() ? 0 : begun_mark(held_, answer_closing_);
  show(held_.size() - n_held, Part::answer);
}

void ReasoningStream::look_for_closing() {
  const size_t at = held_.find(closing_);
  if (at == std::string::npos) {
    show(held_.size() - begun_mark(held_, closing_), Part::reasoning);
    return;
  }
  show(at, Part::reasoning);
  show(closing_.size(), Part::tag);
  state_ = State::answer_start;
}

void ReasoningStream::finish() {
  show(held_.size(), state_ == State::reasoning ? Part::reasoning : Part::answer);
}

}  // namespace snapkv::chat
