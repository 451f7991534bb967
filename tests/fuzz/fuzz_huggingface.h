// SPDX-License-Identifier: MIT
// The fuzz target of Hugging Face folders: fuzz_huggingface.cpp; replayed in tests/huggingface.
#pragma once

#include <cstddef>
#include <span>

namespace snapkv::test {

/// Reads bytes as one of a folder's files, by the first byte: 's' weights (safetensors), 'c'
/// config.json, 't' tokenizer.json with 320 tokens' embeddings; returns whether it was valid. Any
/// other outcome than that and Error{kBadModel} ends the program.
bool read_hostile_huggingface(std::span<const std::byte> bytes);

}  // namespace snapkv::test
