// SPDX-License-Identifier: MIT
// GGUF's name for the pre-tokenizer of a tokenizer.json, which cuts a text into pieces; byte-pair
// merges never cross the border of a piece.
#pragma once

#include <string>

#include "huggingface/json_file.h"

namespace snapkv::huggingface {

/// `tokenizer.ggml.pre` for a byte-level vocabulary, found by the steps of `pre_tokenizer`.
/// `ignore_merges`: a piece that is a token becomes that token. Throws Error{kBadModel} naming the
/// steps if no GGUF name for them is known.
std::string pre_tokenizer_name(const JsonFields& tokenizer, bool ignore_merges);

/// Whether the tokens spell bytes as GPT-2's tokens do.
bool is_byte_level(const JsonFields& tokenizer);

}  // namespace snapkv::huggingface
