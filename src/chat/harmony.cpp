// SPDX-License-Identifier: MIT
#include "chat/harmony.h"

#include <algorithm>
#include <array>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>";
constexpr std::string_view kRecipient = "to=", kFunctions = "functions.";
constexpr std::string_view kAssistant = "assistant", kReturn = "<|return|>";
/// What ends a message. The last is the beginning of a next one, where the model forgot the end.
constexpr std::array kEnds = {std::string_view("<|end|>"), std::string_view("<|call|>"), kReturn,
                              kStart};
/// A longer text without <|message|> is not a header.
constexpr size_t kLongestHeader = 512;

/// The word at the beginning of `text`, up to white space or a mark.
std::string_view first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_first_of(" \n\t\r<"));
}

std::string_view word_after(std::string_view header, std::string_view mark) {
  const size_t at = header.find(mark);
  return at == std::string_view::npos ? "" : first_word(header.substr(at + mark.size()));
}

/// Whether `text` may go on as a header. Text that a grammar allows has none.
bool may_be_header(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  constexpr std::array kMarks = {kStart, kChannel, kMessage, kRecipient};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) {
    return text.starts_with(mark) || mark.starts_with(text);
  });
}

/// Whether `text`, which may_be_header(), is but the beginning of a mark, such as "<".
bool is_unfinished_mark(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return !text.empty() && text.size() < kStart.size() && !text.starts_with(kRecipient);
}

/// Whether the message that begins so is somebody else's than the assistant's.
bool is_others(std::string_view header) {
  const std::string_view role = word_after(header, kStart);
  return !role.empty() && role != kAssistant;
}

const std::string kNobody;

}  // namespace

bool writes_harmony(std::string_view source) {
  const auto has = [&](std::string_view text) { return source.find(text) != source.npos; };
  return has(kStart) && has(kMessage) && (has(kChannel) || has(kReturn));
}

std::string_view harmony_message(std::string_view prompt) {
  const size_t start = prompt.rfind(kStart);
  if (start == std::string_view::npos) return {};
  const size_t message = prompt.find(kMessage, start);
  return prompt.substr(start, message == prompt.npos ? message : message + kMessage.size() - start);
}

HarmonyStream::HarmonyStream(std::string_view prompt, Options options, Callbacks callbacks)
    : options_(options), callbacks_(std::move(callbacks)) {
  const std::string_view last = harmony_message(prompt);
  // up to a function's name, or in a message that the answer continues
  if (last.ends_with(kMessage)) {
    begin_message(last.substr(0, last.size() - kMessage.size()));
  } else if (const size_t to = last.rfind(kRecipient); to != last.npos) {
    held_ = last.substr(to);
  }
}

void HarmonyStream::push(std::string_view text) {
  held_ += text;
  while (!held_.empty() && step()) {
  }
}

void HarmonyStream::finish() {
  ended_input_ = true;
  while (!held_.empty() && step()) {
  }
  if (state_ == State::body) end_message();
}

bool HarmonyStream::step() {
  switch (state_) {
    case State::header:
      return step_header();
    case State::body:
      return step_body();
    case State::ended:
      held_.clear();
      return true;
  }
  return false;
}

bool HarmonyStream::step_header() {
  const size_t message = held_.find(kMessage);
  const size_t brace = held_.find('{');
  if (is_others(std::string_view(held_).substr(0, message)) && message != held_.npos) {
    state_ = State::ended;
    return true;
  }
  if (message < brace) {
    begin_message(std::string_view(held_).substr(0, message));
    held_.erase(0, message + kMessage.size());
    return true;
  }
  if (!may_be_header(held_) || held_.size() > kLongestHeader) {
    begin_message("");
    return true;
  }
  if (brace != held_.npos) {  // arguments under a grammar, which knows no mark before them
    begin_message(std::string_view(held_).substr(0, brace));
    held_.erase(0, brace);
    return true;
  }
  if (ended_input_) {  // a header that breaks off has nothing to show
    if (is_unfinished_mark(held_)) begin_message("");
    if (state_ == State::body) return true;
    held_.clear();
  }
  return false;
}

/// A message to a function is a call, and one to a tool that nobody has offered is not: such tools
/// are part of the reasoning.
HarmonyStream::Kind HarmonyStream::kind_of(std::string_view header, std::string& name) const {
  const std::string_view recipient = word_after(header, kRecipient);
  if (options_.takes_calls && recipient.size() > kFunctions.size() &&
      recipient.starts_with(kFunctions)) {
    name = recipient.substr(kFunctions.size());
    return Kind::call;
  }
  return word_after(header, kChannel) == "analysis" ? Kind::reasoning : Kind::text;
}

void HarmonyStream::begin_message(std::string_view header) {
  state_ = State::body;
  has_shown_ = false;
  function_.clear();
  kind_ = kind_of(header, function_);
  if (kind_ == Kind::call) callbacks_.begin(function_);
}

bool HarmonyStream::awaits_name() const {
  return state_ == State::header && options_.takes_calls && held_.ends_with(kFunctions) &&
         word_after(held_, kRecipient) == kFunctions;
}

const std::string& HarmonyStream::awaits_arguments_of() const {
  const bool awaits = state_ == State::body && kind_ == Kind::call && !has_shown_ && held_.empty();
  return awaits ? function_ : kNobody;
}

bool HarmonyStream::step_body() {
  size_t end = std::string::npos;
  std::string_view mark;
  size_t n_held = 0;
  for (const std::string_view candidate : kEnds) {
    const size_t at = held_.find(candidate);
    if (at < end) {
      end = at;
      mark = candidate;
    }
    n_held = std::max(n_held, begun_mark(held_, candidate));
  }
  if (end == std::string::npos) {
    const size_t n_shown = held_.size() - (ended_input_ ? 0 : n_held);
    show(std::string_view(held_).substr(0, n_shown));
    held_.erase(0, n_shown);
    return false;
  }
  show(std::string_view(held_).substr(0, end));
  held_.erase(0, mark == kStart ? end : end + mark.size());
  end_message();
  return true;
}

void HarmonyStream::end_message() {
  const bool is_call = kind_ == Kind::call;
  if (is_call && !has_shown_) callbacks_.arguments("{}");
  if (kind_ == Kind::text) shown_text_ = shown_text_ || has_shown_;
  if (kind_ == Kind::reasoning) shown_reasoning_ = shown_reasoning_ || has_shown_;
  state_ = is_call && options_.one_call ? State::ended : State::header;
  kind_ = Kind::text;
}

void HarmonyStream::show(std::string_view part) {
  if (part.empty()) return;
  const bool is_first = !std::exchange(has_shown_, true);
  switch (kind_) {
    case Kind::text:
      if (is_first && shown_text_) callbacks_.text("\n\n");
      return callbacks_.text(part);
    case Kind::reasoning:
      if (is_first && shown_reasoning_) callbacks_.reasoning("\n\n");
      return callbacks_.reasoning(part);
    case Kind::call:
      return callbacks_.arguments(part);
  }
}

}  // namespace snapkv::chat
