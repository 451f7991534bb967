// SPDX-License-Identifier: MIT
#include "chat/tool_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/call_scanner.h"
#include "chat/parameter_scanner.h"
#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

constexpr std::string_view kHermesEnd = "</tool_call>", kArguments = "[ARGS]";

std::string_view mark_of(ToolFormat format) {
  switch (format) {
    case ToolFormat::hermes:
    case ToolFormat::generic:
    case ToolFormat::coder:
      return "<tool_call>";
    case ToolFormat::mistral:
      return "[TOOL_CALLS]";
    case ToolFormat::llama3:
      return "<|python_tag|>";
    default:
      return {};
  }
}

void skip(std::string& text, std::string_view characters) {
  text.erase(0, std::min(text.find_first_not_of(characters), text.size()));
}

}  // namespace

ToolStream::ToolStream(ToolFormat format, const std::map<std::string, Json>& functions,
                       bool one_call, Callbacks callbacks)
    : format_(format),
      functions_(functions),
      one_call_(one_call),
      callbacks_(std::move(callbacks)) {
  if (format_ == ToolFormat::none) state_ = State::plain;
}

void ToolStream::push(std::string_view text) {
  held_ += text;
  while (!held_.empty() && step()) {
  }
  show_arguments();
}

void ToolStream::finish() {
  ended_ = true;
  while (!held_.empty() && step()) {
  }
  if (state_ == State::call && !begun_) {
    if (marked_ && reader_->has_name()) {
      begun_ = true;
      callbacks_.begin(reader_->name());
    } else {
      give_up();
    }
  }
  if (reader_) reader_->finish();
  show_arguments();
  if (state_ == State::name) raw_ += std::exchange(held_, {}), give_up();
  if (state_ == State::text || state_ == State::start || state_ == State::plain) {
    show(std::exchange(held_, {}));
  }
  if (!white_.empty() && !after_call_) callbacks_.text(std::exchange(white_, {}));
}

std::optional<ArgumentsStart> ToolStream::arguments_start() const {
  if (state_ != State::call || !is_known(reader_->name())) return std::nullopt;
  return reader_->arguments_start();
}

bool ToolStream::step() {
  switch (state_) {
    case State::start:
      return step_start();
    case State::text:
      return step_text();
    case State::between:
      return step_between();
    case State::call:
      return step_call();
    case State::name:
      return step_name();
    case State::after_call:
      return step_after_call();
    case State::ended:
      held_.clear();
      return true;
    case State::plain:
      break;
  }
  show(std::exchange(held_, {}));
  return true;
}

void ToolStream::show(std::string_view text) {
  if (text.empty()) return;
  if (!white_.empty()) callbacks_.text(std::exchange(white_, {}));
  callbacks_.text(text);
  after_call_ = false;
}

// A call may be the whole answer, without a mark: marks that are control tokens have no text.
bool ToolStream::step_start() {
  const size_t at = held_.find_first_not_of(kSpaces);
  if (at == std::string::npos) return false;
  const bool is_bare = format_ == ToolFormat::llama3 || format_ == ToolFormat::harmony;
  const bool may_be_call =
      (is_bare && held_[at] == '{') || (format_ == ToolFormat::mistral && held_[at] == '[');
  if (!may_be_call) {
    state_ = mark_of(format_).empty() ? State::plain : State::text;
    return true;
  }
  if (format_ == ToolFormat::mistral) {
    // "[{" begins a call, "[TOOL_CALLS]" is a mark, and anything else is text
    const size_t next = held_.find_first_not_of(kSpaces, at + 1);
    if (next == std::string::npos && !ended_) return false;
    if (next == std::string::npos || held_[next] != '{') {
      state_ = State::text;
      return true;
    }
    raw_ = held_.substr(0, next);
    held_.erase(0, next);
  } else {
    raw_ = held_.substr(0, at);
    held_.erase(0, at);
  }
  begin_call(false);
  return true;
}

bool ToolStream::step_text() {
  const std::string_view mark = mark_of(format_);
  size_t found = held_.find(mark);
  size_t n_begun = begun_mark(held_, mark);
  bool is_marked = true;
  if (format_ == ToolFormat::coder) {  // this format often leaves <tool_call> out
    const size_t call = held_.find(ParameterScanner::kBegin);
    is_marked = found <= call;
    found = std::min(found, call);
    n_begun = std::max(n_begun, begun_mark(held_, ParameterScanner::kBegin));
  }
  const size_t n_shown = found != std::string::npos ? found : held_.size() - (ended_ ? 0 : n_begun);
  // white space before a call is not content
  const std::string_view before = std::string_view(held_).substr(0, n_shown);
  const size_t n_text = before.find_last_not_of(kSpaces) + 1;  // npos + 1 is 0
  show(before.substr(0, n_text));
  white_ += before.substr(n_text);
  if (found == std::string::npos) {
    held_.erase(0, n_shown);
    return false;
  }
  held_.erase(0, found);
  if (!is_marked) {
    begin_call(false);
    return true;
  }
  held_.erase(0, mark.size());
  white_.clear();
  raw_ = mark;
  marked_ = true;
  state_ = State::between;
  return true;
}

bool ToolStream::step_between() {
  if (has_tags()) {
    begin_call(true);
    return true;
  }
  skip(held_, " \n\t\r,;");
  if (held_.empty()) return false;
  if (format_ == ToolFormat::mistral && held_.front() == '[') {
    const std::string_view mark = mark_of(format_);
    if (held_.size() < mark.size() && mark.starts_with(held_) && !ended_) return false;
    held_.erase(0, held_.starts_with(mark) ? mark.size() : 1);
    return true;
  }
  if (held_.front() == '{') {
    begin_call(marked_);
  } else if (format_ == ToolFormat::mistral && held_.front() == ']') {
    held_.erase(0, 1);
    state_ = State::text;
  } else if (format_ == ToolFormat::mistral && marked_) {
    state_ = State::name;
  } else {
    state_ = State::plain;
  }
  return true;
}

void ToolStream::begin_call(bool marked) {
  if (format_ == ToolFormat::coder) {
    reader_ = std::make_unique<ParameterScanner>(functions_);
  } else {
    reader_ = std::make_unique<CallScanner>();
  }
  marked_ = marked;
  begun_ = false;
  state_ = State::call;
}

bool ToolStream::step_call() {
  size_t n = 0;
  while (n < held_.size() && !reader_->complete()) {
    if (!reader_->push(held_[n])) {
      if (begun_) {  // the call breaks off: its beginning is kept, the rest is lost
        raw_.clear();
        held_.erase(0, n);
        end_call();
        return true;
      }
      raw_ += held_.substr(0, n);
      held_.erase(0, n);
      give_up();
      return true;
    }
    ++n;
    if (!begun_ && reader_->has_name()) {
      if (!marked_ && !is_known(reader_->name())) {
        raw_ += held_.substr(0, n);
        held_.erase(0, n);
        give_up();
        return true;
      }
      begun_ = true;
      white_.clear();  // white space before a call without a mark
      callbacks_.begin(reader_->name());
    }
  }
  raw_ += held_.substr(0, n);
  held_.erase(0, n);
  if (!reader_->complete()) return false;
  end_call();
  return true;
}

void ToolStream::end_call() {
  show_arguments();
  const bool is_complete = reader_->complete();
  if (!reader_->has_arguments() && is_complete) callbacks_.arguments("{}");
  reader_.reset();
  raw_.clear();
  after_call_ = true;
  state_ = has_tags() ? State::after_call : State::between;
  if (one_call_ && is_complete) state_ = State::ended;
}

void ToolStream::show_arguments() {
  if (!begun_ || !reader_) return;
  const std::string part = reader_->take_arguments();
  if (!part.empty()) callbacks_.arguments(part);
}

void ToolStream::give_up() {
  reader_.reset();
  state_ = has_tags() ? State::text : State::plain;
  if (format_ == ToolFormat::coder) {  // its text may hold the beginning of another call
    const size_t n_text = marked_ ? mark_of(format_).size() : 1;
    held_.insert(0, raw_, n_text, std::string::npos);
    raw_.resize(n_text);
  }
  show(std::exchange(raw_, {}));
}

// Reads name[ARGS]{...}, or name{...}.
bool ToolStream::step_name() {
  const size_t brace = held_.find('{');
  if (brace == std::string::npos) return false;
  std::string name = held_.substr(0, brace);
  if (const size_t at = name.find(kArguments); at != std::string::npos) name.resize(at);
  while (!name.empty() && kSpaces.find(name.back()) != std::string_view::npos) name.pop_back();
  if (!is_known(name)) {
    give_up();
    return true;
  }
  begin_call(true);
  reader_ = std::make_unique<CallScanner>(name);
  begun_ = true;
  callbacks_.begin(name);
  held_.erase(0, brace);
  raw_.clear();
  return true;
}

bool ToolStream::step_after_call() {
  skip(held_, kSpaces);
  if (held_.empty()) return false;
  if (held_.starts_with(kHermesEnd)) {
    held_.erase(0, kHermesEnd.size());
    state_ = State::text;
    return true;
  }
  if (kHermesEnd.starts_with(held_) && !ended_) return false;
  state_ = State::text;  // the end mark is missing
  return true;
}

}  // namespace snapkv::chat
