// SPDX-License-Identifier: MIT
// The GGUF keys for the vocabulary of a Hugging Face folder with a tokenizer.model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "huggingface/config.h"
#include "huggingface/keys.h"
#include "huggingface/sentencepiece.h"
#include "huggingface/token_table.h"

namespace snapkv::huggingface {

/// Ids by the kind of token: "bos", "eos", "unk", "pad".
using NamedIds = std::map<std::string, int64_t, std::less<>>;

struct PieceVocabulary {
  TokenTable table;  // its tokens, types and scores have become keys
  NamedIds named;    // what tokenizer.model says about special tokens
};

/// `added_tokens`: added_tokens.json, {TEXT: ID}; `tokenizer_config` may add further tokens; both
/// are empty objects where there is no such file. Throws Error{kBadModel} naming the file, the
/// field, and the expected and actual values.
PieceVocabulary add_piece_keys(const SentencePieceModel& model, const JsonFields& added_tokens,
                               const JsonFields& tokenizer_config, const Config& config,
                               Keys& keys);

}  // namespace snapkv::huggingface
