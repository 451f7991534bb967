// SPDX-License-Identifier: MIT
// The fuzz target for Hugging Face folders (fuzz_huggingface.cpp), replayed in tests/huggingface.
#pragma once

#include <cstddef>
#include <span>

namespace snapkv::test {

/// Reads bytes as one of a folder's files, selected by the first byte: 's' weights (safetensors),
/// 'c' config.json, 't' tokenizer.json and 'p' tokenizer.model with embeddings for 320 tokens.
/// Returns whether it was valid. Any error other than Error{kBadModel} ends the program.
bool read_hostile_huggingface(std::span<const std::byte> bytes);

}  // namespace snapkv::test
