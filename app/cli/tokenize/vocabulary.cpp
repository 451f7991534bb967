// SPDX-License-Identifier: MIT
#include "cli/tokenize/vocabulary.h"

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace snapkv::cli {
void add_vocabulary_options(CLI::App& command, VocabularySettings& settings) {
  command
      .add_option("-m,--model", settings.path,
                  "GGUF file (also one that has a vocabulary only), tokenizer.json, or a folder "
                  "that has one")
      ->type_name("FILE");
}

std::shared_ptr<const Tokenizer> load_vocabulary(const VocabularySettings& settings) {
  if (settings.path.empty())
    fail(ErrorCode::kUsage,
         "no model: name one with -m FILE, SNAPKV_MODEL or in the configuration file");
  return Tokenizer::load(settings.path);
}

}  // namespace snapkv::cli
