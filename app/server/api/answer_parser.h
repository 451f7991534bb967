// SPDX-License-Identifier: MIT
// AnswerParser: reasoning, tool calls and content of one answer, told apart while it is written.
// Used by Answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/reasoning.h"
#include "server/api/tool_stream.h"

namespace snapkv::server {

/// How an answer is to be read.
struct AnswerSyntax {
  bool has_reasoning = false;  ///< reasoning is told from the answer
  std::string prompt_end;      ///< the prompt's last bytes: it may open the reasoning
  ToolFormat tools = ToolFormat::none;
  std::map<std::string, Json> functions;  ///< the schema of each tool's parameters
  bool one_call = false;                  ///< the answer ends with its first complete call
};

/// A part of an answer.
struct Piece {
  enum class Kind { content, reasoning, tool_begin, tool_arguments };
  Kind kind = Kind::content;
  std::string text;  ///< of Kind::tool_begin the function's name
  int call = 0;      ///< of tool calls: which one of the answer; set by Answers
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerSyntax& syntax);
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  std::vector<Piece> push(std::string_view text);
  /// What was held back, at the end of the answer.
  std::vector<Piece> finish();
  /// Whether the answer ends here, as AnswerSyntax::one_call says.
  bool ended() const { return tools_.ended(); }

 private:
  void add(Piece::Kind kind, std::string_view text);
  void add_reasoning(std::string_view text);
  void add_answer(std::string_view text);

  const bool has_reasoning_;
  std::vector<Piece> pieces_;
  ToolStream tools_;
  ReasoningStream reasoning_;
  bool trims_reasoning_ = true;  // white space before reasoning, and after it, is left out
  bool trims_answer_ = false;
  std::string white_;  // at the end of the reasoning so far
};

}  // namespace snapkv::server
