// SPDX-License-Identifier: MIT
// The library's only exception type. It ends the request that threw it; the model and other
// sessions stay usable. Catch it in one place (a command's main, a server's handler).
#pragma once

#include <stdexcept>
#include <string>

namespace snapkv {

/// The kind of failure; the value is also the exit code of the `snapkv` command.
enum class ErrorCode : int {
  kRuntime = 1,          ///< I/O failed, a library failed, or an internal limit was reached
  kUsage = 2,            ///< an argument or option is invalid
  kBadModel = 3,         ///< the model file is damaged, incomplete or not supported
  kDoesNotFit = 4,       ///< not enough memory; the message says how much is needed
  kContextExceeded = 5,  ///< more tokens than the session's context
  kCancelled = 130,      ///< a callback or signal asked to stop
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace snapkv
