// SPDX-License-Identifier: MIT
// FormReader: reads what follows a form's opening (call_forms.h), byte by byte, as calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/call_forms.h"
#include "chat/found_call.h"
#include "chat/parameter_scanner.h"
#include "chat/value_scanner.h"

namespace snapkv::chat {

class FormReader {
 public:
  /// `functions` must outlive this.
  FormReader(const CallForm& form, const Functions& functions)
      : form_(form), functions_(functions) {}

  /// Takes one more byte. Returns false when it and the bytes of rest() before it are not part of
  /// calls; what was read before stands.
  bool push(char c);
  /// Says that no more bytes follow.
  void finish();

  /// Whether all that was read, except rest(), is calls and marks.
  bool is_whole() const { return state_ == State::between && !calls_.empty(); }
  std::vector<FoundCall>& calls() { return calls_; }
  /// Whether nothing but white space has been read.
  bool is_empty() const { return state_ == State::between && calls_.empty() && rest_.empty(); }
  const CallForm& form() const { return form_; }
  /// Where the arguments of a call begin, if they do here.
  std::optional<ArgumentsStart> arguments_start() const;
  /// The last bytes, which may be the beginning of a mark.
  const std::string& rest() const { return rest_; }

 private:
  enum class State {
    between,      // before, between and after calls
    bracket,      // after "[", which begins a list of JSON or Python
    python_name,  // after "[": a function's name
    name,
    after_name,
    value,
    parameters,
  };

  bool push_between(char c);
  bool push_after_name(char c);
  bool push_bracket(char c);
  bool push_name(char c);
  bool push_value(char c);
  bool push_parameters(char c);
  /// Takes a byte of a mark. `other` takes the bytes that turn out to be none.
  bool push_mark(char c, bool (FormReader::*other)(char c));
  bool begin_call(char c);
  bool begin_arguments(char c);
  bool begin_value(ValueScanner::Holds holds, const std::string& begun);
  bool end_value();
  bool add(std::vector<FoundCall> calls);

  const CallForm& form_;
  const Functions& functions_;
  State state_ = State::between;
  std::string rest_;
  size_t n_mark_ = 0;    // bytes of rest_ that are a complete mark
  bool closed_ = false;  // the form's end has come
  std::string name_;   // of the call that is being read; in State::bracket, its "["
  ValueScanner::Holds holds_ = ValueScanner::Holds::calls;
  std::unique_ptr<ValueScanner> value_;
  std::unique_ptr<ParameterScanner> parameters_;
  std::vector<FoundCall> calls_;
};

}  // namespace snapkv::chat
