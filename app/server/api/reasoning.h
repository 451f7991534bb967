// SPDX-License-Identifier: MIT
// ReasoningStream: tells a model's reasoning from its answer while both are being written:
// <think>...</think> and the like, whose tags may come in pieces. Used by the server's answers and
// by the display of `snapkv chat`.
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
  void show(std::string_view text);
  /// Shows the first bytes of what is held back, which are a tag.
  void show_tag(size_t size);

  Show show_;
  std::string held_;     // may be the beginning of a tag
  std::string closing_;  // the tag that ends the reasoning; empty: in the answer
};

}  // namespace snapkv::server
