// SPDX-License-Identifier: MIT
// PythonScanner: finds the end of one call that a model writes as Python, NAME(KEY=VALUE, ...), and
// passes it on when it is complete (python_calls.h).
#pragma once

#include <string>
#include <vector>

#include "chat/call_reader.h"

namespace snapkv::chat {

class PythonScanner : public CallReader {
 public:
  bool push(char c) override;
  bool complete() const override { return complete_; }
  bool has_name() const override { return complete_; }
  const std::string& name() const override { return name_; }
  std::string take_arguments() override;
  bool has_arguments() const override { return complete_; }

 private:
  std::string text_;
  std::vector<char> open_;  // closing brackets of the open ones
  char quote_ = 0;          // of the string that is open; 0: none
  bool escaped_ = false, complete_ = false, failed_ = false;
  std::string name_, arguments_;
};

}  // namespace snapkv::chat
