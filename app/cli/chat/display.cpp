// SPDX-License-Identifier: MIT
#include "cli/chat/display.h"

#include "cli/common/terminal.h"

namespace snapkv::cli {

AnswerDisplay::AnswerDisplay(ProgressDisplay& progress)
    : progress_(progress), is_terminal_(stdout_is_terminal()), colour_(colour_stdout()) {}

ChatSession::Callbacks AnswerDisplay::callbacks() {
  return {.progress = progress_.callback(),
          .on_begin = [this](const std::string& prompt) { begin(prompt); },
          .on_token =
              [this](std::string_view text, int64_t) {
                if (harmony_) return harmony_->push(text);
                stream_->push(text);
              }};
}

void AnswerDisplay::begin(const std::string& prompt) {
  progress_.clear();
  text_.emplace(/*wraps=*/true);
  if (const std::string header = chat::harmony_header(prompt); !header.empty()) {
    harmony_.emplace(
        header, [this](std::string_view text, bool is_reasoning) { show(text, is_reasoning); });
    return;
  }
  using Part = chat::ReasoningStream::Part;
  stream_.emplace(prompt,
                  [this](std::string_view text, Part part) { show(text, part != Part::answer); });
}

void AnswerDisplay::set_dimmed(bool dimmed) {
  if (dimmed == dimmed_ || !colour_) return;
  text_->flush();
  write_styled_stdout(dimmed ? "\x1b[2m" : "\x1b[0m");
  dimmed_ = dimmed;
}

void AnswerDisplay::show(std::string_view text, bool is_reasoning) {
  set_dimmed(is_reasoning);
  text_->write(text);
}

void AnswerDisplay::finish() {
  progress_.clear();
  if (!stream_ && !harmony_) return;
  if (stream_) stream_->finish();
  if (harmony_) harmony_->finish();
  set_dimmed(false);
  stream_.reset();
  harmony_.reset();
  text_->finish();
  if (is_terminal_) write_stdout("\n");
}

}  // namespace snapkv::cli
