// SPDX-License-Identifier: MIT
#include "chat/reasoning.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

struct Tags {
  std::string_view opening, closing;
};
constexpr std::array<Tags, 5> kTags = {{{"<think>", "</think>"},
                                        {"<thinking>", "</thinking>"},
                                        {"<reasoning>", "</reasoning>"},
                                        {"[THINK]", "[/THINK]"},
                                        {"<seed:think>", "</seed:think>"}}};

}  // namespace

ReasoningStream::ReasoningStream(std::string_view prompt, Show show) : show_(std::move(show)) {
  while (!prompt.empty() && (prompt.back() == '\n' || prompt.back() == ' ')) {
    prompt.remove_suffix(1);
  }
  for (const Tags& tags : kTags) {
    if (prompt.ends_with(tags.opening)) closing_ = tags.closing;
  }
  if (!closing_.empty()) state_ = State::reasoning;
}

void ReasoningStream::show(size_t size, Part part) {
  if (size > 0) show_(std::string_view(held_).substr(0, size), part);
  held_.erase(0, size);
}

void ReasoningStream::push(std::string_view text) {
  held_ += text;
  if (state_ == State::start) look_for_opening();
  if (state_ == State::reasoning) look_for_closing();
  if (state_ == State::answer) show(held_.size(), Part::answer);
}

void ReasoningStream::look_for_opening() {
  show(std::min(held_.find_first_not_of(kSpaces), held_.size()), Part::answer);
  if (held_.empty()) return;
  bool may_come = false;
  for (const Tags& tags : kTags) {
    may_come = may_come || tags.opening.starts_with(held_);
    if (!held_.starts_with(tags.opening)) continue;
    show(tags.opening.size(), Part::tag);
    closing_ = tags.closing;
    state_ = State::reasoning;
    return;
  }
  if (!may_come) state_ = State::answer;
}

void ReasoningStream::look_for_closing() {
  const size_t at = held_.find(closing_);
  if (at == std::string::npos) {
    show(held_.size() - begun_mark(held_, closing_), Part::reasoning);
    return;
  }
  show(at, Part::reasoning);
  show(closing_.size(), Part::tag);
  state_ = State::answer;
}

void ReasoningStream::finish() {
  show(held_.size(), state_ == State::reasoning ? Part::reasoning : Part::answer);
}

}  // namespace snapkv::chat
