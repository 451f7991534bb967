// SPDX-License-Identifier: MIT
#include "chat/call_finder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "chat/text_parts.h"

namespace snapkv::chat {
namespace {

using Opening = FormOpening::State;

/// A result, which only the client can know: a model that writes one goes on by itself.
constexpr std::string_view kResult = "<tool_response>";
/// The first characters of all openings.
constexpr std::string_view kFirst = "<[{`";
/// A call that is written so often is a loop. Twice may be meant: two dice are thrown.
constexpr auto kLoop = 3;

bool are_equal(const FoundCall& a, const FoundCall& b) {
  return a.name == b.name && a.arguments == b.arguments;
}

/// Whether `mark` begins here.
Opening mark_at(std::string_view text, std::string_view mark, bool ended) {
  if (text.starts_with(mark)) return Opening::whole;
  return mark.starts_with(text) && !ended ? Opening::partial : Opening::none;
}

/// Whether only white space stands before the text's end in its line.
bool ends_in_new_line(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r");
  return last != std::string_view::npos && text[last] == '\n';
}

}  // namespace

CallFinder::CallFinder(const Functions& functions, Options options, Callbacks callbacks)
    : functions_(functions), options_(options), callbacks_(std::move(callbacks)) {}

void CallFinder::push(std::string_view text) {
  held_ += text;
  step();
}

void CallFinder::step() {
  bool goes_on = true;
  while (goes_on && !held_.empty()) {
    switch (state_) {
      case State::text:
        goes_on = step_text();
        break;
      case State::form:
        goes_on = step_form();
        break;
      case State::ended:
        held_.clear();
    }
  }
}

void CallFinder::settle() {
  ended_input_ = true;
  step();
  if (state_ == State::form) {
    reader_->finish();
    if (reader_->is_whole()) {
      add_calls();
    } else if (pending_.empty() && reader_->calls().empty()) {
      give_up();
    } else {
      add_calls();  // without the one that breaks off
    }
  }
  if (!held_.empty()) {
    if (!pending_.empty()) give_up();
    show(std::exchange(held_, {}));
  }
  accept();
}

void CallFinder::finish() {
  settle();
  if (!after_call_ && !white_.empty()) callbacks_.text(std::exchange(white_, {}));
}

void CallFinder::begin_other_call() {
  // a code block may stand around the call
  const bool begins_block = state_ == State::text && held_.starts_with(kFence);
  in_block_ = begins_block || (state_ == State::form && reader_->is_empty() &&
                               reader_->form().opening == kFence);
  if (in_block_) {
    held_.clear();
    reader_.reset();
    state_ = State::text;
    if (pending_.empty()) raw_.clear();
  }
  settle();
  ended_input_ = false;
  white_.clear();
  after_call_ = true;
}

/// Looks at held_ byte by byte until something that may be a call begins.
bool CallFinder::step_text() {
  for (size_t i = 0; i < held_.size(); ++i) {
    const char c = held_[i];
    if (is_space(c)) {
      begins_line_ = begins_line_ || c == '\n';
      continue;
    }
    const std::string_view rest = std::string_view(held_).substr(i);
    const Opening fence = in_block_ ? mark_at(rest, kFence, ended_input_) : Opening::none;
    if (fence == Opening::partial) return false;
    in_block_ = false;
    if (fence == Opening::whole) {
      held_.erase(0, i + kFence.size());
      return true;
    }
    const bool has_calls = after_call_ || !pending_.empty();
    const Opening result = has_calls ? mark_at(rest, kResult, ended_input_) : Opening::none;
    const FormOpening opening = kFirst.find(c) == std::string_view::npos
                                    ? FormOpening{}
                                    : find_opening(rest, begins_line_, ended_input_);
    const bool is_text = result == Opening::none && opening.state == Opening::none;
    if (result == Opening::whole || (is_text && has_calls && options_.ends_after)) {
      accept();
      state_ = State::ended;
      return true;
    }
    if (is_text) {
      if (!pending_.empty()) give_up();
      after_call_ = begins_line_ = false;
      continue;
    }
    take_text(i);
    if (opening.state != Opening::whole) return false;
    begin_form(opening);
    return true;
  }
  take_text(held_.size());
  return false;
}

void CallFinder::take_text(size_t size) {
  const std::string text = held_.substr(0, size);
  held_.erase(0, size);
  if (pending_.empty()) {
    show(text);
  } else {
    raw_ += text;  // white space
  }
}

/// White space is shown before the next text: there is none before a call.
void CallFinder::show(std::string_view text) {
  const size_t n_text = text.find_last_not_of(kSpaces) + 1;  // npos + 1 is 0
  if (n_text > 0) {
    if (!white_.empty()) callbacks_.text(std::exchange(white_, {}));
    callbacks_.text(text.substr(0, n_text));
    after_call_ = false;
  }
  white_ += text.substr(n_text);
}

void CallFinder::begin_form(const FormOpening& opening) {
  raw_ += held_.substr(0, opening.size);
  held_.erase(0, opening.size);
  reader_ = std::make_unique<FormReader>(*opening.form, functions_);
  state_ = State::form;
}

bool CallFinder::step_form() {
  size_t n = 0;
  for (size_t n_calls = reader_->calls().size(); n < held_.size() && reader_->push(held_[n]); ++n) {
    if (reader_->calls().size() == n_calls) continue;
    n_calls = reader_->calls().size();
    if (is_in_loop()) {
      end_loop();
      return true;
    }
  }
  raw_ += held_.substr(0, n);
  held_.erase(0, n);
  if (held_.empty()) return false;
  if (reader_->is_whole()) {  // what may have begun a mark is looked at again, as text
    const size_t n_calls = raw_.size() - reader_->rest().size();
    held_.insert(0, raw_, n_calls, std::string::npos);
    raw_.resize(n_calls);
    add_calls();
  } else {
    give_up();
  }
  return true;
}

void CallFinder::add_calls() {
  auto& calls = reader_->calls();
  pending_.insert(pending_.end(), std::make_move_iterator(calls.begin()),
                  std::make_move_iterator(calls.end()));
  reader_.reset();
  state_ = State::text;
  begins_line_ = ends_in_new_line(raw_);
  if (options_.one_call && pending_.size() > 1) accept();
}

bool CallFinder::is_in_loop() const {
  const auto& calls = reader_->calls();
  const auto is_last = [&](const FoundCall& call) { return are_equal(call, calls.back()); };
  return std::count_if(pending_.begin(), pending_.end(), is_last) +
             std::count_if(calls.begin(), calls.end(), is_last) >=
         kLoop;
}

void CallFinder::end_loop() {
  add_calls();
  std::vector<FoundCall> once;
  for (const FoundCall& call : pending_) {
    const bool is_new = std::none_of(once.begin(), once.end(),
                                     [&](const FoundCall& each) { return are_equal(each, call); });
    if (is_new) once.push_back(call);
  }
  pending_ = std::move(once);
  accept();
  held_.clear();
  state_ = State::ended;
}

/// Shows what was held back as text; where the answer ends after calls, only the calls before it.
void CallFinder::give_up() {
  reader_.reset();
  state_ = State::text;
  if (options_.ends_after && !pending_.empty()) {
    accept();
    state_ = State::ended;
    return;
  }
  begins_line_ = ends_in_new_line(raw_);
  pending_.clear();
  show(std::exchange(raw_, {}));
}

void CallFinder::accept() {
  if (pending_.empty()) return;
  const size_t n = options_.one_call ? 1 : pending_.size();
  for (size_t i = 0; i < n; ++i) callbacks_.call(pending_[i]);
  pending_.clear();
  raw_.clear();
  white_.clear();
  after_call_ = true;
  if (options_.one_call) state_ = State::ended;
}

}  // namespace snapkv::chat
