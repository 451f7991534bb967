// SPDX-License-Identifier: MIT
// HarmonyStream: takes apart the answers of gpt-oss, which are messages with headers, while they
// are being written. The prompt ends in "<|start|>assistant", so an answer begins within a header:
//   <|channel|>analysis<|message|>REASONING<|end|><|start|>assistant<|channel|>final<|message|>TEXT
//   <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGUMENTS<|call|>
// The recipient may also stand before the channel. Text of the channel commentary is part of the
// answer. The marks are control tokens, which vocabularies show (Vocab::visible); <|call|> and
// <|return|> end the answer.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace snapkv::chat {

/// Whether a template writes conversations of this form.
bool writes_harmony(std::string_view template_source);

/// The header of a prompt's last message, with <|message|> if it has begun.
std::string_view harmony_message(std::string_view prompt);

class HarmonyStream {
 public:
  struct Callbacks {
    std::function<void(std::string_view text)> text;
    std::function<void(std::string_view text)> reasoning;
    /// A call begins; its arguments follow, in any number of parts.
    std::function<void(const std::string& name)> begin;
    std::function<void(std::string_view part)> arguments;
  };

  struct Options {
    bool takes_calls = false;  ///< there are functions; else a message to one is not a call
    bool one_call = false;     ///< nothing follows the first call
  };

  /// `prompt`: the end of the text that the answer continues; it may have begun a message, which
  /// may be a call: then `callbacks.begin` is called at once.
  HarmonyStream(std::string_view prompt, Options options, Callbacks callbacks);

  void push(std::string_view text);
  /// Shows the text that is held back.
  void finish();
  /// Whether the name of a function follows the text so far.
  bool awaits_name() const;
  /// The function whose arguments follow the text so far; empty: none do.
  const std::string& awaits_arguments_of() const;
  /// Whether all further text is dropped: the one call is complete, or the model goes on with the
  /// message of somebody else, such as a call's result.
  bool ended() const { return state_ == State::ended; }

 private:
  enum class State {
    header,  // up to <|message|>
    body,    // up to a mark that ends the message
    ended,
  };
  enum class Kind { text, reasoning, call };

  /// Each step consumes what it can at the beginning of held_; false when it needs more text.
  bool step();
  bool step_header();
  bool step_body();
  /// What the header says of its message's kind, and the name of the function that it calls.
  Kind kind_of(std::string_view header, std::string& name) const;
  void begin_message(std::string_view header);
  void end_message();
  void show(std::string_view part);

  const Options options_;
  const Callbacks callbacks_;
  State state_ = State::header;
  Kind kind_ = Kind::text;
  std::string held_;         // not yet processed
  std::string function_;     // that is called
  bool has_shown_ = false;   // of this message
  bool shown_text_ = false;  // earlier messages have shown text, or reasoning
  bool shown_reasoning_ = false;
  bool ended_input_ = false;  // finish() was called
};

}  // namespace snapkv::chat
