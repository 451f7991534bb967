// SPDX-License-Identifier: MIT
// The GGUF keys of a Hugging Face folder's vocabulary and chat template: from tokenizer.json,
// tokenizer_config.json, generation_config.json and chat_template.jinja. Used by folder.cpp.
//
// Byte-level BPE becomes "gpt2" with its merges and the name of its pre-tokenizer; BPE with byte
// fallback, which is how SentencePiece's vocabularies are written there, becomes "llama" with
// scores that put the merges in the same order. Other kinds (Unigram, WordPiece) are errors.
#pragma once

#include <string>

#include "huggingface/config.h"
#include "huggingface/keys.h"

namespace snapkv::huggingface {

/// The files that say something of a vocabulary; empty objects stand for those that are not there.
struct VocabularyFiles {
  const JsonFields& tokenizer;         // tokenizer.json
  const JsonFields& tokenizer_config;  // tokenizer_config.json
  const JsonFields& generation;        // generation_config.json
  const JsonFields& root;              // config.json
};

/// Throws Error{kBadModel} naming file, field, expected and actual.
void add_vocabulary_keys(const VocabularyFiles& files, const Config& config, Keys& keys);
/// The same, of the files in a folder. `root` is config.json.
void add_vocabulary_keys(const std::string& folder, const JsonFields& root, const Config& config,
                         Keys& keys);
/// tokenizer.chat_template and, of templates with other names, tokenizer.chat_template.NAME.
void add_template_keys(const std::string& folder, Keys& keys);

}  // namespace snapkv::huggingface
