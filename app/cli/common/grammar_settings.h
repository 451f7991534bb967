// SPDX-License-Identifier: MIT
// The options that constrain an answer: --grammar, --json-schema, or a file with either; the names
// are llama.cpp's.
#pragma once

#include <optional>
#include <string>

#include "cli/common/cli_types.h"
#include "snapkv/grammar.h"

namespace snapkv::cli {

class GrammarSettings {
 public:
  void add_options(CLI::App& command);
  /// Reads the grammar; nothing when none is given. Throws kUsage, naming the option or file, for
  /// an invalid grammar or schema; kRuntime when a file can't be read.
  std::optional<Grammar> read() const;

 private:
  std::string grammar_, grammar_file_, schema_, schema_file_;
  CLI::App* command_ = nullptr;
};

}  // namespace snapkv::cli
