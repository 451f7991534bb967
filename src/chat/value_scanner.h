// SPDX-License-Identifier: MIT
// ValueScanner: finds the end of a bracketed value that a model writes, JSON or Python's literals,
// while it is being written, and sees early that the value is not a call.
#pragma once

#include <string>
#include <vector>

#include "chat/found_call.h"

namespace snapkv::chat {

class ValueScanner {
 public:
  /// What the value holds: calls as JSON, a call's arguments as JSON, or Python.
  enum class Holds { calls, arguments, python };

  ValueScanner(Holds holds, const Functions& functions) : holds_(holds), functions_(functions) {}

  /// Takes one more byte, the first of them an opening bracket. Returns false when the text can't
  /// be such a value.
  bool push(char c);
  bool complete() const { return complete_; }
  /// With Holds::calls: the function whose arguments begin with the next byte or after white space;
  /// empty where they do not, or where it has not been named yet.
  const std::string& awaits_arguments_of() const { return awaited_; }
  /// The value so far. Line breaks and the like inside JSON's strings, which models write although
  /// JSON does not allow them, are escaped, and a call in {{ }}, as the template of Qwen2.5 Coder
  /// shows it by mistake, has single braces.
  const std::string& text() const { return text_; }

 private:
  /// An open bracket; those of calls and of lists of calls are known by their place.
  struct Level {
    char closing;
    bool is_call, is_list;
    bool expects_key;
    bool is_double = false;  // a call in {{ }}
  };

  bool is_json() const { return holds_ != Holds::python; }
  bool push_in_string(char c);
  bool end_string();
  bool open(char c);
  bool close(char c);

  const Holds holds_;
  const Functions& functions_;
  std::string text_;
  std::vector<Level> levels_;
  char quote_ = 0;  // of the string that is open; 0: none
  bool escaped_ = false;
  size_t string_begin_ = 0;  // in text_, of its quote
  std::string key_;          // last key of a call's object
  std::string function_;     // that the call names
  std::string awaited_;      // function_, after the colon before its arguments
  bool expects_brace_ = false;  // the second one after a call in {{ }}
  bool complete_ = false;
};

}  // namespace snapkv::chat
