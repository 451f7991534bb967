// SPDX-License-Identifier: MIT
// ReasoningStream: tells a model's reasoning from its answer while both are being written:
// <think>...</think> and the like, whose tags may come in pieces. Reasoning comes once, before
// everything else; tags further on are text that an answer speaks of. Used by the server's answers
// and by the display of `snapkv chat`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace snapkv::server {

class ReasoningStream {
 public:
  enum class Part { answer, reasoning, tag };
  /// Called with text that is complete, never empty.
  using Show = std::function<void(std::string_view text, Part part)>;

  /// `prompt`: the text that the answer continues; where it ends in an opening tag the answer
  /// begins with reasoning.
  ReasoningStream(std::string_view prompt, Show show);

  void push(std::string_view text);
  /// Shows what is held back.
  void finish();

 private:
  enum class State {
    start,      // nothing but white space yet: reasoning may begin
    reasoning,  // up to closing_
    answer,     // to the end
  };

  /// Shows the first bytes of what is held back.
  void show(size_t size, Part part);
  void look_for_opening();
  void look_for_closing();

  Show show_;
  State state_ = State::start;
  std::string held_;     // may be the beginning of a tag
  std::string closing_;  // the tag that ends the reasoning
};

}  // namespace snapkv::server
