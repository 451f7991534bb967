// SPDX-License-Identifier: MIT
// ReasoningStream: tells a model's reasoning from its answer while both are being written:
// <think>...</think> and the like, whose tags may come in pieces. Used by the chat's display.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace snapkv::cli {

class ReasoningStream {
 public:
  /// Called with text that is complete: tags are reasoning.
  using Show = std::function<void(std::string_view text, bool is_reasoning)>;

  /// `prompt`: the text that the answer continues; where it ends in an opening tag the answer
  /// begins with reasoning.
  ReasoningStream(std::string_view prompt, Show show);

  void push(std::string_view text);
  /// Shows what is held back.
  void finish();

 private:
  void show(std::string_view text);

  Show show_;
  std::string held_;     // may be the beginning of a tag
  std::string closing_;  // the tag that ends the reasoning; empty: in the answer
};

}  // namespace snapkv::cli
