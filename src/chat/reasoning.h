// SPDX-License-Identifier: MIT
// ReasoningStream: separates a model's reasoning from its answer while both are being written. The
// tags, such as <think>...</think>, may arrive in pieces. Reasoning comes only once, before
// everything else; later tags are part of the answer's text. Some models write tags around that
// text too, which are dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace snapkv::chat {

/// What ends the reasoning that a prompt has begun, with line breaks; empty: it has begun none.
std::string reasoning_end(std::string_view prompt);

class ReasoningStream {
 public:
  enum class Part { answer, reasoning, tag };
  /// Called with text whose part is certain; never empty.
  using Show = std::function<void(std::string_view text, Part part)>;

  /// `prompt`: the text that the answer continues; if it ends in an opening tag, the answer begins
  /// with reasoning.
  ReasoningStream(std::string_view prompt, Show show);

  void push(std::string_view text);
  /// Shows the text that is held back.
  void finish();

 private:
  enum class State {
    start,         // only white space so far: reasoning may begin
    reasoning,     // until closing_
    answer_start,  // after the reasoning: only white space so far
    answer,        // until the end
  };

  /// Shows the first bytes of the text that is held back.
  void show(size_t size, Part part);
  void look_for_opening();
  void look_for_closing();
  void look_for_answer_opening();
  /// Drops the mark that ends the answer's text.
  void look_for_answer_closing();

  Show show_;
  State state_ = State::start;
  std::string held_;                             // text that may be the beginning of a tag
  std::string closing_;                          // the tag that ends the reasoning
  std::string answer_opening_, answer_closing_;  // the tags around the answer's text
};

}  // namespace snapkv::chat
