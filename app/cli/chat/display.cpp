// SPDX-License-Identifier: MIT
#include "cli/chat/display.h"

#include "cli/common/terminal.h"

namespace snapkv::cli {

AnswerDisplay::AnswerDisplay(ProgressDisplay& progress)
    : progress_(progress), is_terminal_(stdout_is_terminal()), colour_(colour_stdout()) {}

ChatSession::Callbacks AnswerDisplay::callbacks() {
  return {.progress = progress_.callback(),
          .on_begin =
              [this](const std::string& prompt) {
                progress_.clear();
                text_.emplace(/*wraps=*/true);
                using Part = chat::ReasoningStream::Part;
                stream_.emplace(prompt, [this](std::string_view text, Part part) {
                  show(text, part != Part::answer);
                });
              },
          .on_token = [this](std::string_view text, int64_t) { stream_->push(text); }};
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
  if (!stream_) return;
  stream_->finish();
  set_dimmed(false);
  stream_.reset();
  text_->finish();
  if (is_terminal_) write_stdout("\n");
}

}  // namespace snapkv::cli
