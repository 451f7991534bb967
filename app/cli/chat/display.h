// SPDX-License-Identifier: MIT
// AnswerDisplay: writes an answer to stdout as it arrives; on a terminal with reasoning dimmed, and
// lines that break between words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/harmony_text.h"
#include "chat/reasoning.h"
#include "cli/chat/chat_session.h"
#include "cli/common/answer_text.h"
#include "cli/common/progress.h"

namespace snapkv::cli {

class AnswerDisplay {
 public:
  explicit AnswerDisplay(ProgressDisplay& progress);

  /// Returns the callbacks for one answer; finish() ends it.
  ChatSession::Callbacks callbacks();
  /// Ends the answer's last line, followed by an empty line on a terminal. Does nothing if no
  /// answer began.
  void finish();

 private:
  void begin(const std::string& prompt);
  void show(std::string_view text, bool is_reasoning);
  void set_dimmed(bool dimmed);

  ProgressDisplay& progress_;
  bool is_terminal_;
  bool colour_;
  // while an answer is being written: its text, and one of the others, which take it apart
  std::optional<AnswerText> text_;
  std::optional<chat::ReasoningStream> stream_;
  std::optional<chat::HarmonyText> harmony_;
  bool dimmed_ = false;
};

}  // namespace snapkv::cli
