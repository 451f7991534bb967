// SPDX-License-Identifier: MIT
// ToolStream: separates tool calls from text while a model writes both.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "chat/call_reader.h"
#include "chat/found_call.h"
#include "chat/tools.h"

namespace snapkv::chat {

class ToolStream {
 public:
  struct Callbacks {
    std::function<void(std::string_view text)> text;
    /// A call begins; its arguments follow, in any number of parts.
    std::function<void(const std::string& name)> begin;
    std::function<void(std::string_view part)> arguments;
  };

  /// `functions`: the existing functions, with the schemas of their parameters; must outlive this.
  /// Where only the call itself marks it, any other name makes it text. `one_call`: nothing follows
  /// the first complete call.
  ToolStream(ToolFormat format, const std::map<std::string, Json>& functions, bool one_call,
             Callbacks callbacks);

  void push(std::string_view text);
  /// Shows the text that is held back. A call that has begun remains a call, complete or not.
  void finish();
  /// Where the arguments of a call begin, if they do at the end of the text so far.
  std::optional<ArgumentsStart> arguments_start() const;
  /// Whether the mark before a call that is JSON has just been written.
  bool awaits_call() const {
    return state_ == State::between && has_tags() && format_ != ToolFormat::coder;
  }
  /// Whether all further text is dropped because the one call is complete.
  bool ended() const { return state_ == State::ended; }

 private:
  enum class State {
    start,       // only white space so far
    text,        // text of the answer
    between,     // after a mark, or after a call that another may follow
    call,        // read by a CallReader
    name,        // Mistral's newer form: name[ARGS]{...}
    after_call,  // Hermes and Qwen3-Coder: up to </tool_call>
    plain,       // text until the end
    ended,       // after the one call
  };

  bool is_known(const std::string& name) const { return functions_.contains(name); }
  /// Whether all calls are enclosed in <tool_call> and </tool_call>.
  bool has_tags() const {
    return format_ == ToolFormat::hermes || format_ == ToolFormat::generic ||
           format_ == ToolFormat::coder;
  }
  /// Each step consumes what it can at the beginning of held_; false when it needs more text.
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
  /// Treats the supposed call as text.
  void give_up();
  void show(std::string_view text);

  const ToolFormat format_;
  const std::map<std::string, Json>& functions_;
  const bool one_call_;
  const Callbacks callbacks_;
  State state_ = State::start;
  std::string held_;   // not yet processed
  std::string white_;  // white space before a mark, shown if text follows
  std::string raw_;    // text of the call that the client does not know of yet
  std::unique_ptr<CallReader> reader_;
  bool marked_ = false;      // the call follows a mark
  bool begun_ = false;       // the client has been told of the call
  bool after_call_ = false;  // no text has followed the last call
  bool ended_ = false;       // finish() was called
};

}  // namespace snapkv::chat
