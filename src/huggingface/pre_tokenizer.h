// SPDX-License-Identifier: MIT
// The name that GGUF has for the pre-tokenizer of a tokenizer.json, which cuts a text into the
// pieces that byte-pair merges stay inside of. Used by vocabulary.cpp.
#pragma once

#include <string>

#include "huggingface/json_file.h"

namespace snapkv::huggingface {

/// `tokenizer.ggml.pre` of a byte-level vocabulary, from the steps of `pre_tokenizer`.
/// `ignore_merges`: a piece that is a token is that token. Throws Error{kBadModel} naming the steps
/// when GGUF has no known name for them.
std::string pre_tokenizer_name(const JsonFields& tokenizer, bool ignore_merges);

/// Whether the tokens spell bytes as GPT-2's do.
bool is_byte_level(const JsonFields& tokenizer);

}  // namespace snapkv::huggingface
