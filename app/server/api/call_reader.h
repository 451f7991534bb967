// SPDX-License-Identifier: MIT
// CallReader: reads one call while a model writes it: the function's name as soon as it is
// complete, then the arguments as JSON, as far as they are certain. One class for each way to write
// calls (call_scanner.h, parameter_scanner.h). Used by ToolStream.
#pragma once

#include <string>

namespace snapkv::server {

class CallReader {
 public:
  virtual ~CallReader() = default;

  /// Takes one more byte. False when the text can't be a call, or the call is complete already.
  virtual bool push(char c) = 0;
  /// No more bytes come: what was held back of the arguments is certain now.
  virtual void finish() {}

  virtual bool complete() const = 0;
  /// Whether name() is known.
  virtual bool has_name() const = 0;
  virtual const std::string& name() const = 0;
  /// What came of the arguments since the last call of this function.
  virtual std::string take_arguments() = 0;
  /// Whether the call has arguments at all.
  virtual bool has_arguments() const = 0;
};

}  // namespace snapkv::server
