// SPDX-License-Identifier: MIT
// The library's only exception type. It ends the request that threw it; the model and other
// sessions stay usable. Catch it in one place (a command's main, a server's handler).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  /// Where the message names an option, which a front end may call otherwise.
  struct Mention {
    std::string option;          ///< "kv_budget": OptionInfo::option
    size_t begin = 0, size = 0;  ///< of its name in the message, in bytes
  };

  Error(ErrorCode code, const std::string& message, std::vector<Mention> mentions = {})
      : std::runtime_error(message),
        code_(code),
        mentions_(std::make_shared<const std::vector<Mention>>(std::move(mentions))) {}

  ErrorCode code() const noexcept { return code_; }
  /// The options that the message names, in its order: the first one is the one at fault.
  const std::vector<Mention>& mentions() const noexcept { return *mentions_; }
  /// The message with the options' names as `shown` gives them for OptionInfo::option: a command
  /// says --kv-budget, and a server kv.budget.
  std::string message(const std::function<std::string(std::string_view option)>& shown) const;
  /// The same error with a text before its message.
  Error prefixed(const std::string& text) const;

 private:
  ErrorCode code_;
  std::shared_ptr<const std::vector<Mention>> mentions_;  // shared: copies must not throw
};

}  // namespace snapkv
