// SPDX-License-Identifier: MIT
// The vocabulary for tokenize and detokenize.
#pragma once

#include <memory>
#include <string>

#include "cli/common/cli_types.h"
#include "snapkv/tokenizer.h"

namespace snapkv::cli {

struct VocabularySettings {
  std::string path;
};

void add_vocabulary_options(CLI::App& command, VocabularySettings& settings);
/// Throws kUsage when the settings name no file, and as Tokenizer::load().
std::shared_ptr<const Tokenizer> load_vocabulary(const VocabularySettings& settings);

}  // namespace snapkv::cli
