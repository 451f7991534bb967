// SPDX-License-Identifier: MIT
// CallScanner: reads a call that a model writes as a JSON object, {"name": ..., "arguments":
// {...}}, while it is being written: the name as soon as it is complete, then the arguments byte by
// byte, as they were written.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/call_reader.h"

namespace snapkv::chat {

class CallScanner : public CallReader {
 public:
  CallScanner() = default;
  /// For a call whose name has already been written: only the arguments follow.
  explicit CallScanner(std::string name)
      : state_(State::value),
        role_(Role::arguments),
        only_arguments_(true),
        has_name_(true),
        name_(std::move(name)) {}

  bool push(char c) override;
  bool complete() const override { return state_ == State::complete; }
  bool has_name() const override { return has_name_; }
  const std::string& name() const override { return name_; }
  /// Models also write the arguments as a string that holds JSON; those are returned at once, when
  /// the string is complete.
  std::string take_arguments() override;
  std::optional<ArgumentsStart> arguments_start() const override;
  bool has_arguments() const override { return has_arguments_; }

 private:
  enum class State { object, key_or_end, key, colon, value, next, complete, failed };
  enum class Role { name, arguments, other };

  bool push_value(char c);
  /// Handles the end of a value.
  void end_value();
  bool fail() {
    state_ = State::failed;
    return false;
  }

  State state_ = State::object;
  Role role_ = Role::other;
  std::string text_;        // of the key or value that is being read
  size_t n_taken_ = 0;      // bytes of text_ that were returned as arguments
  std::vector<char> open_;  // open brackets within the value
  bool in_string_ = false, escaped_ = false, begun_ = false;
  bool only_arguments_ = false;
  bool has_name_ = false, has_arguments_ = false;
  std::string name_, arguments_;
};

}  // namespace snapkv::chat
