// SPDX-License-Identifier: MIT
// AnswerWatch: follows an answer while a model writes it, to see where its calls end it and where
// the grammar of a call (begun_call_grammar()) begins to hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/answer_parser.h"

namespace snapkv::chat {

class AnswerWatch {
 public:
  explicit AnswerWatch(const AnswerSyntax& syntax) : format_(syntax.tools), parser_(syntax) {}

  /// Takes more of the answer.
  void push(std::string_view text);
  /// Whether the answer ends here (AnswerParser::ended()).
  bool ended() const { return parser_.ended(); }
  /// Where a call, or its arguments, began in the text that was pushed last: how the texts of its
  /// grammar begin, and the text after that place.
  const std::optional<std::string>& begun_call() const { return begun_; }

 private:
  const ToolFormat format_;
  AnswerParser parser_;
  std::optional<std::string> begun_;
};

}  // namespace snapkv::chat
