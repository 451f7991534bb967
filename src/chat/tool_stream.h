// SPDX-License-Identifier: MIT
// ToolStream: separates the calls of a template's format from text while a model writes both. What
// the format's calls look like is its row's to say (call_syntax.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "chat/call_reader.h"
#include "chat/call_syntax.h"
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
  /// the first complete call. `prompt`: the text that the answer continues, which may end in the
  /// mark of a call.
  ToolStream(ToolFormat format, const std::map<std::string, Json>& functions, bool one_call,
             std::string_view prompt, Callbacks callbacks);

  void push(std::string_view text);
  /// Shows the text that is held back. A call that has begun remains a call, complete or not.
  void finish();
  /// Where the arguments of a call begin, if they do at the end of the text so far.
  std::optional<ArgumentsStart> arguments_start() const;
  /// Whether the mark before a call that is JSON has just been written, in a format whose grammar
  /// of calls begins there.
  bool awaits_call() const {
    return state_ == State::between && raw_ == syntax_.opening &&
           (syntax_.format == ToolFormat::hermes || syntax_.format == ToolFormat::generic);
  }
  /// Whether all further text is dropped because the one call is complete.
  bool ended() const { return state_ == State::ended; }

 private:
  enum class State {
    start,       // only white space so far
    text,        // text of the answer
    between,     // after a mark, or after a call that another may follow
    name,        // a name whose arguments follow
    after_name,  // up to the arguments
    call,        // read by a CallReader
    after_call,  // up to the mark that closes each call
    plain,       // text until the end
    ended,       // after the one call
  };
  enum class Mark { none, partial, whole };

  bool is_known(const std::string& name) const { return functions_.contains(name); }
  bool is_list() const {
    return syntax_.bare == '[' || syntax_.first.find('[') != std::string_view::npos;
  }
  bool has_names() const {
    return syntax_.body == CallSyntax::Body::arguments || !syntax_.name_marks[0].empty();
  }
  /// Whether the mark before a call makes it one, whatever its name.
  bool takes_any_name() const;
  /// Each step consumes what it can at the beginning of held_; false when it needs more text.
  bool step();
  bool step_start();
  bool step_text();
  bool step_between();
  bool step_name();
  bool step_after_name();
  bool step_call();
  bool step_after_call();
  /// Consumes one of these marks at the beginning of held_.
  Mark take_mark(const CallSyntax::Texts& marks);
  /// Moves bytes from held_ to raw_.
  void take(size_t n);
  void begin_call(bool marked, std::unique_ptr<CallReader> reader);
  std::unique_ptr<CallReader> reader_of_body() const;
  void end_call();
  void show_arguments();
  /// Treats the supposed call as text.
  void give_up();
  void show(std::string_view text);

  const CallSyntax& syntax_;
  const std::map<std::string, Json>& functions_;
  const bool one_call_;
  const Callbacks callbacks_;
  State state_ = State::start;
  std::string held_;   // not yet processed
  std::string white_;  // white space before a mark, shown if text follows
  std::string raw_;    // text of the call that the client does not know of yet
  std::unique_ptr<CallReader> reader_;
  std::string name_;         // in State::after_name
  bool marked_ = false;      // the call follows a mark
  bool numbered_ = false;    // a number may follow the name or its mark
  bool in_calls_ = false;    // a call has been read since the last opening
  bool begun_ = false;       // the client has been told of the call
  bool after_call_ = false;  // no text has followed the last call
  bool ended_ = false;       // finish() was called
};

}  // namespace snapkv::chat
