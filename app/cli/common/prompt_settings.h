// SPDX-License-Identifier: MIT
// The prompt of a command: -p TEXT or -f FILE.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace snapkv::cli {

class PromptSettings {
 public:
  void add_options(CLI::App& command);
  bool is_given() const;
  /// Throws kUsage unless exactly one is given and it is not empty; kRuntime when the file can't be
  /// read.
  std::string read() const;

 private:
  std::string text_;
  std::string file_;
  CLI::Option* text_option_ = nullptr;
  CLI::Option* file_option_ = nullptr;
};

}  // namespace snapkv::cli
