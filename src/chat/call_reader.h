// SPDX-License-Identifier: MIT
// CallReader: reads one call while a model writes it: the function's name as soon as it is
// complete, then the arguments as JSON, as far as they are certain. Each way to write calls has a
// class of its own (call_scanner.h, parameter_scanner.h).
#pragma once

#include <optional>
#include <string>

#include "chat/found_call.h"

namespace snapkv::chat {

class CallReader {
 public:
  virtual ~CallReader() = default;

  /// Takes one more byte. Returns false when the text can't be a call or the call is already
  /// complete.
  virtual bool push(char c) = 0;
  /// Says that no more bytes follow, so that arguments which were held back become certain.
  virtual void finish() {}

  virtual bool complete() const = 0;
  /// Whether name() is known.
  virtual bool has_name() const = 0;
  virtual const std::string& name() const = 0;
  /// Returns the arguments that have been read since this function was last called.
  virtual std::string take_arguments() = 0;
  /// Where the arguments begin, if they do here, as JSON, and name() is known.
  virtual std::optional<ArgumentsStart> arguments_start() const { return std::nullopt; }
  /// Whether the call has arguments at all.
  virtual bool has_arguments() const = 0;
};

}  // namespace snapkv::chat
