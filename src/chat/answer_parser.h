// SPDX-License-Identifier: MIT
// AnswerParser: separates the reasoning, tool calls and content of an answer while it is written.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/call_finder.h"
#include "chat/harmony.h"
#include "chat/reasoning.h"
#include "chat/tool_stream.h"

namespace snapkv::chat {

/// How an answer is to be parsed.
struct AnswerSyntax {
  bool has_reasoning = false;  ///< the answer may begin with reasoning
  bool is_harmony = false;     ///< it is messages with channels (harmony.h)
  std::string prompt_end;      ///< last bytes of the prompt, which may open the reasoning
  ToolFormat tools = ToolFormat::none;
  std::map<std::string, Json> functions;  ///< the schema of each tool's parameters
  bool one_call = false;                  ///< the answer ends after its first complete call
  bool any_form = false;  ///< calls may also have the form of another template (call_forms.h)
};

/// A part of an answer.
struct Piece {
  enum class Kind { content, reasoning, tool_begin, tool_arguments };
  Kind kind = Kind::content;
  std::string text;  ///< for Kind::tool_begin, the function's name
  size_t call = 0;   ///< for tool calls, the call's index in the answer, which the parser leaves 0
};

class AnswerParser {
 public:
  explicit AnswerParser(const AnswerSyntax& syntax);
  AnswerParser(const AnswerParser&) = delete;
  AnswerParser& operator=(const AnswerParser&) = delete;

  std::vector<Piece> push(std::string_view text);
  /// Returns the text that was held back, at the end of the answer.
  std::vector<Piece> finish();
  /// Whether the answer ends here: because of AnswerSyntax::one_call, or because text follows calls
  /// after which there is none.
  bool ended() const {
    return tools_.ended() || (finder_ && finder_->ended()) || (harmony_ && harmony_->ended());
  }
  /// Where the arguments of a call begin, if they do at the end of the text so far.
  std::optional<ArgumentsStart> arguments_start() const;
  /// Whether the template's mark before a call that is JSON, or before harmony's name of a
  /// function, has just been written.
  bool awaits_call() const;

 private:
  void add(Piece::Kind kind, std::string_view text);
  void add_reasoning(std::string_view text);
  void add_answer(std::string_view text);

  HarmonyStream::Callbacks harmony_callbacks();
  ToolStream::Callbacks callbacks();

  const std::map<std::string, Json> functions_;
  const bool has_reasoning_;
  std::vector<Piece> pieces_;
  std::optional<CallFinder> finder_;  // with AnswerSyntax::any_form
  ToolStream tools_;
  ReasoningStream reasoning_;
  std::optional<HarmonyStream> harmony_;  // with AnswerSyntax::is_harmony
  bool ends_reasoning_ = false;           // text follows reasoning that is part of the answer
  bool trims_reasoning_ = true;           // drops white space before and after the reasoning
  bool trims_answer_ = false;
  std::string white_;  // white space at the end of the reasoning so far
};

}  // namespace snapkv::chat
