// SPDX-License-Identifier: MIT
// What an answer must look like: --grammar, --json-schema, or a file of one of them, by llama.cpp's
// names. Used by generate.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "snapkv/grammar.h"

namespace snapkv::cli {

class GrammarSettings {
 public:
  void add_options(CLI::App& command);
  /// Nothing where none is given. Throws kUsage for what is no grammar or schema, naming the option
  /// or file; kRuntime when a file can't be read.
  std::optional<Grammar> read() const;

 private:
  std::string grammar_, grammar_file_, schema_, schema_file_;
  CLI::App* command_ = nullptr;
};

}  // namespace snapkv::cli
