// SPDX-License-Identifier: MIT
// AnswerDisplay: writes an answer to stdout as it comes, reasoning dimmed where people watch. Used
// by the chat's shell.
#pragma once

#include <optional>
#include <string_view>

#include "cli/chat/chat_session.h"
#include "cli/common/progress.h"
#include "server/api/reasoning.h"

namespace snapkv::cli {

class AnswerDisplay {
 public:
  explicit AnswerDisplay(ProgressDisplay& progress);

  /// For one answer; finish() ends it.
  ChatSession::Callbacks callbacks();
  /// Ends the answer's last line, and lets a terminal leave a line free. Nothing if none began.
  void finish();

 private:
  void show(std::string_view text, bool is_reasoning);
  void set_dimmed(bool dimmed);

  ProgressDisplay& progress_;
  bool is_terminal_;
  bool colour_;
  std::optional<server::ReasoningStream> stream_;  // while there is an answer
  bool dimmed_ = false;
  char last_ = '\n';
};

}  // namespace snapkv::cli
