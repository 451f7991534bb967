// SPDX-License-Identifier: MIT
#include "chat/tool_stream.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "chat/call_scanner.h"
#include "chat/literal_scanner.h"
#include "chat/parameter_scanner.h"
#include "chat/python_scanner.h"
#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

using Body = CallSyntax::Body;

constexpr std::string_view kCallId = "[CALL_ID]";  // of Mistral: an id follows the name
constexpr size_t kMostCallName = 256;

/// Formats without a row: harmony's messages may be calls without a mark.
constexpr CallSyntax kNoSyntax = {}, kHarmonySyntax = {.format = ToolFormat::harmony, .bare = '{'};

const CallSyntax& syntax_of(ToolFormat format) {
  if (format == ToolFormat::harmony) return kHarmonySyntax;
  const CallSyntax* found = find_syntax(format);
  return found == nullptr ? kNoSyntax : *found;
}

bool is_call_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

void skip(std::string& text, std::string_view characters) {
  text.erase(0, std::min(text.find_first_not_of(characters), text.size()));
}

std::string_view without_end(std::string_view text, std::string_view characters) {
  return text.substr(0, text.find_last_not_of(characters) + 1);  // npos + 1 is 0
}

}  // namespace

ToolStream::ToolStream(ToolFormat format, const std::map<std::string, Json>& functions,
                       bool one_call, std::string_view prompt, Callbacks callbacks)
    : syntax_(syntax_of(format)),
      functions_(functions),
      one_call_(one_call),
      callbacks_(std::move(callbacks)) {
  if (format == ToolFormat::none) state_ = State::plain;
  const bool is_begun =
      !syntax_.opening.empty() && without_end(prompt, kSpaces).ends_with(syntax_.opening);
  if (!is_begun) return;
  marked_ = true;
  state_ = State::between;
}

bool ToolStream::takes_any_name() const {
  const bool is_tagged = syntax_.body == Body::parameters && !syntax_.tags.name_begin.empty();
  return syntax_.body == Body::object || is_tagged;
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
  if (state_ == State::name || state_ == State::after_name) {
    raw_ += std::exchange(held_, {});
    give_up();
  }
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
    case State::name:
      return step_name();
    case State::after_name:
      return step_after_name();
    case State::call:
      return step_call();
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
  if (syntax_.bare == 0 || held_[at] != syntax_.bare) {
    state_ = syntax_.opening.empty() ? State::plain : State::text;
    return true;
  }
  if (syntax_.bare == '[') {
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
  begin_call(false, std::make_unique<CallScanner>());
  return true;
}

bool ToolStream::step_text() {
  const std::string_view mark = syntax_.opening;
  size_t found = held_.find(mark);
  size_t n_begun = begun_mark(held_, mark);
  bool is_marked = true;
  if (!syntax_.call_opening.empty()) {  // models leave the other mark out
    const size_t call = held_.find(syntax_.call_opening);
    is_marked = found <= call;
    found = std::min(found, call);
    n_begun = std::max(n_begun, begun_mark(held_, syntax_.call_opening));
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
  raw_.clear();
  in_calls_ = false;
  marked_ = is_marked;
  if (!is_marked && syntax_.body == Body::parameters) {
    begin_call(false, reader_of_body());
    return true;
  }
  if (is_marked) take(mark.size());
  state_ = State::between;
  return true;
}

void ToolStream::take(size_t n) {
  raw_ += held_.substr(0, n);
  held_.erase(0, n);
}

ToolStream::Mark ToolStream::take_mark(const CallSyntax::Texts& marks) {
  size_t n_longest = 0;
  for (const std::string_view mark : marks) {
    if (mark.empty()) break;
    if (held_.starts_with(mark)) {
      n_longest = std::max(n_longest, mark.size());
    } else if (mark.starts_with(held_) && !ended_) {
      return Mark::partial;
    }
  }
  if (n_longest == 0) return Mark::none;
  take(n_longest);
  return Mark::whole;
}

bool ToolStream::step_between() {
  take(std::min(held_.find_first_not_of(in_calls_ ? " \n\t\r,;" : kSpaces), held_.size()));
  if (held_.empty()) return false;
  const Mark mark = take_mark(syntax_.marks);
  if (mark != Mark::none) return mark == Mark::whole;
  if (!syntax_.closing.empty() && (in_calls_ || !syntax_.closes_each)) {
    const Mark closing = take_mark({syntax_.closing});
    if (closing == Mark::partial) return false;
    if (closing == Mark::whole) {
      if (!in_calls_) show(raw_);
      raw_.clear();
      state_ = State::text;
      return true;
    }
  }
  if (in_calls_) raw_.clear();
  const char c = held_.front();
  if (is_list() && (c == '[' || c == ']')) {
    take(1);
  } else if (!syntax_.text_name.empty() && syntax_.text_name.starts_with(held_) && !ended_) {
    return false;
  } else if (!syntax_.text_name.empty() && held_.starts_with(syntax_.text_name) &&
             !(held_.size() > syntax_.text_name.size() &&
               is_call_name_byte(held_[syntax_.text_name.size()]))) {
    held_.erase(0, syntax_.text_name.size());
    skip(held_, "\n");
    raw_.clear();
    state_ = State::text;
  } else if (c == '{') {
    begin_call(marked_, std::make_unique<CallScanner>());
  } else if (syntax_.body == Body::object && !has_names()) {
    begin_call(marked_, std::make_unique<CallScanner>());  // which fails
  } else if (has_names() && is_call_name_byte(c)) {
    state_ = State::name;
  } else if (syntax_.body == Body::parameters || syntax_.body == Body::literals ||
             syntax_.body == Body::python) {
    begin_call(marked_ && takes_any_name(), reader_of_body());
  } else {
    give_up();
  }
  return true;
}

std::unique_ptr<CallReader> ToolStream::reader_of_body() const {
  switch (syntax_.body) {
    case Body::parameters:
      return std::make_unique<ParameterScanner>(functions_, syntax_.tags);
    case Body::literals:
      return std::make_unique<LiteralScanner>();
    case Body::python:
      return std::make_unique<PythonScanner>();
    default:
      return std::make_unique<CallScanner>();
  }
}

void ToolStream::begin_call(bool marked, std::unique_ptr<CallReader> reader) {
  reader_ = std::move(reader);
  marked_ = marked;
  begun_ = false;
  state_ = State::call;
}

bool ToolStream::step_name() {
  const auto end = std::find_if_not(held_.begin(), held_.end(), is_call_name_byte);
  const auto size = static_cast<size_t>(end - held_.begin());
  if (end == held_.end() && size <= kMostCallName) return false;
  name_ = held_.substr(0, size);
  if (!is_known(name_)) {
    give_up();
    return true;
  }
  take(size);
  numbered_ = syntax_.numbered;
  state_ = State::after_name;
  return true;
}

bool ToolStream::step_after_name() {
  take(std::min(held_.find_first_not_of(kSpaces), held_.size()));
  if (held_.empty()) return false;
  if (kCallId.starts_with(held_) && !ended_) return false;
  if (held_.starts_with(kCallId)) {
    take(kCallId.size());
    numbered_ = true;
    return true;
  }
  const bool is_number = is_call_name_byte(held_[0]) || (held_[0] == ':' && syntax_.numbered);
  if (numbered_ && is_number) {
    take(1);
    return true;
  }
  const Mark mark = take_mark(syntax_.name_marks);
  if (mark != Mark::none) return mark == Mark::whole;
  if (held_.front() != '{') {
    give_up();
    return true;
  }
  begin_call(true, std::make_unique<CallScanner>(name_));
  begun_ = true;
  white_.clear();
  raw_.clear();
  callbacks_.begin(name_);
  return true;
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
      white_.clear();  // white space before a call is not content
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
  after_call_ = in_calls_ = true;
  state_ = syntax_.closes_each ? State::after_call : State::between;
  if (one_call_ && is_complete) state_ = State::ended;
}

void ToolStream::show_arguments() {
  if (!begun_ || !reader_) return;
  const std::string part = reader_->take_arguments();
  if (!part.empty()) callbacks_.arguments(part);
}

void ToolStream::give_up() {
  reader_.reset();
  state_ = syntax_.opening.empty() ? State::plain : State::text;
  if (!syntax_.call_opening.empty() &&
      !raw_.empty()) {  // it may hold the beginning of another call
    const bool has_opening = raw_.starts_with(syntax_.opening);
    const size_t n_text = has_opening ? syntax_.opening.size() : 1;
    held_.insert(0, raw_, n_text, std::string::npos);
    raw_.resize(n_text);
  }
  show(std::exchange(raw_, {}));
}

bool ToolStream::step_after_call() {
  skip(held_, kSpaces);
  if (held_.empty()) return false;
  const std::string_view closing = syntax_.closing;
  if (!closing.empty() && held_.starts_with(closing)) {
    held_.erase(0, closing.size());
  } else if (closing.starts_with(held_) && !closing.empty() && !ended_) {
    return false;
  }
  state_ = State::text;  // the end mark may be missing
  return true;
}

}  // namespace snapkv::chat
