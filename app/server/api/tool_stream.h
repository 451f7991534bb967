// SPDX-License-Identifier: MIT
// ToolStream: tells tool calls from text while a model writes both. Used by AnswerParser.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/call_scanner.h"
#include "server/api/tools.h"

namespace snapkv::server {

class ToolStream {
 public:
  struct Callbacks {
    std::function<void(std::string_view text)> text;
    /// A call begins; its arguments follow, in any number of parts.
    std::function<void(const std::string& name)> begin;
    std::function<void(std::string_view part)> arguments;
  };

  /// `names`: the tools that there are. Where nothing but the call itself marks it, other names
  /// make it text.
  ToolStream(ToolFormat format, std::vector<std::string> names, Callbacks callbacks);

  void push(std::string_view text);
  /// Shows what is held back. A call that has begun stays one, complete or not.
  void finish();

 private:
  enum class State {
    start,       // nothing but white space yet
    text,        // of the answer
    between,     // after a mark, or after a call that another one may follow
    call,        // in a JSON object
    name,        // Mistral's newer form: name[ARGS]{...}
    after_call,  // Hermes: up to </tool_call>
    plain,       // text to the end
  };

  bool is_known(const std::string& name) const;
  /// Each takes what it can of the beginning of held_; false when it needs more text.
  bool step();
  bool step_start();
  bool step_text();
  bool step_between();
  bool step_call();
  bool step_name();
  bool step_after_call();
  void begin_call(bool marked);
  void end_call();
  void show_arguments();
  /// The call was none: its text is text.
  void give_up();
  void show(std::string_view text);

  const ToolFormat format_;
  const std::vector<std::string> names_;
  const Callbacks callbacks_;
  State state_ = State::start;
  std::string held_;   // not looked at yet
  std::string white_;  // white space before a mark, shown if text follows
  std::string raw_;    // of the call that has not begun for the client
  std::optional<CallScanner> scanner_;
  bool marked_ = false;      // a mark says that this is a call
  bool begun_ = false;       // the client knows of the call
  bool after_call_ = false;  // no text since the last call
  bool ended_ = false;       // finish() was called
};

}  // namespace snapkv::server
