// SPDX-License-Identifier: MIT
// The GGUF keys for the vocabulary and the chat template of a Hugging Face folder, from
// tokenizer.json, tokenizer_config.json, generation_config.json and chat_template.jinja.
//
// Byte-level BPE becomes "gpt2" with its merges and the name of its pre-tokenizer. BPE with byte
// fallback, the form in which such folders hold SentencePiece vocabularies, becomes "llama" with
// scores that put the merges in the same order. Other kinds (Unigram, WordPiece) are errors.
// A folder without tokenizer.json may have SentencePiece's own file, tokenizer.model, instead.
#pragma once

#include <string>

#include "huggingface/config.h"
#include "huggingface/keys.h"

namespace snapkv::huggingface {

/// The files about a vocabulary; an empty object stands for a file that does not exist.
struct VocabularyFiles {
  const JsonFields& tokenizer;         // tokenizer.json
  const JsonFields& tokenizer_config;  // tokenizer_config.json
  const JsonFields& generation;        // generation_config.json
  const JsonFields& root;              // config.json
};

/// Throws Error{kBadModel} naming the file, the field, and the expected and actual values.
void add_vocabulary_keys(const VocabularyFiles& files, const Config& config, Keys& keys);
/// The same for the files in a folder. `root` is config.json.
void add_vocabulary_keys(const std::string& folder, const JsonFields& root, const Config& config,
                         Keys& keys);
/// Sets tokenizer.chat_template, and tokenizer.chat_template.NAME for templates with other names.
void add_template_keys(const std::string& folder, Keys& keys);

}  // namespace snapkv::huggingface
