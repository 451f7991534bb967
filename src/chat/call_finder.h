// SPDX-License-Identifier: MIT
// CallFinder: finds the calls at the end of an answer that a model writes in another form than its
// template's (call_forms.h), while it is being written. ToolStream has taken the template's own
// calls out of the text.
//
// Such a call counts only where no other text follows, its function exists and its arguments fit.
// So text that may be one is held back: until it can't be a call, or up to the answer's end. Of
// several calls the last one may break off, as at the limit of an answer's length; the others count.
// Small models write the same call again and again: the third time ends the answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/form_reader.h"
#include "chat/found_call.h"

namespace snapkv::chat {

class CallFinder {
 public:
  struct Callbacks {
    std::function<void(std::string_view text)> text;
    std::function<void(const FoundCall& call)> call;
  };
  struct Options {
    bool one_call = false;    ///< nothing follows the first call
    bool ends_after = false;  ///< nothing follows calls: what does ends the answer
  };

  /// `functions` must outlive this.
  CallFinder(const Functions& functions, Options options, Callbacks callbacks);

  void push(std::string_view text);
  /// Says that a call of the template's form follows the text so far.
  void begin_other_call();
  /// Shows what is held back, as calls or as text.
  void finish();
  /// Where the arguments of a call begin, if they do at the end of the text so far.
  std::optional<ArgumentsStart> arguments_start() const {
    return state_ == State::form ? reader_->arguments_start() : std::nullopt;
  }
  /// Whether all further text is dropped.
  bool ended() const { return state_ == State::ended; }

 private:
  enum class State { text, form, ended };

  void step();
  /// Each step consumes what it can at the beginning of held_; false when it needs more text.
  bool step_text();
  bool step_form();
  void begin_form(const FormOpening& opening);
  /// Takes the first bytes of held_, which begin no form.
  void take_text(size_t size);
  void show(std::string_view text);
  /// Settles that no more text follows.
  void settle();
  void add_calls();
  /// Whether the last call stands in the answer for the third time.
  bool is_in_loop() const;
  /// Ends the answer with each call once.
  void end_loop();
  void give_up();
  void accept();

  const Functions& functions_;
  const Options options_;
  const Callbacks callbacks_;
  State state_ = State::text;
  std::string held_;                // not yet processed
  std::string white_;               // white space after the text that was shown
  std::string raw_;                 // text of pending_ and of the form that is being read
  std::vector<FoundCall> pending_;  // calls, if no text follows
  std::unique_ptr<FormReader> reader_;
  bool begins_line_ = true;   // only white space stands before held_ in its line
  bool after_call_ = false;   // no text has followed a call that was shown
  bool in_block_ = false;     // that call stands in a code block, whose fences are not shown
  bool ended_input_ = false;  // no more text follows
};

}  // namespace snapkv::chat
