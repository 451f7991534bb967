// SPDX-License-Identifier: MIT
// read_hostile: does with arbitrary bytes what the engine does with the header of a model file.
#pragma once

#include <cstddef>
#include <span>

namespace snapkv::test {

/// How far the bytes were accepted.
enum class Outcome { kNoFile, kNoTokenizer, kTokenizer };

/// Parses the bytes as a GGUF file, touches both ends of every tensor, makes the tokenizer, encodes
/// and decodes. Errors are expected and swallowed; anything else is a bug that crashes.
Outcome read_hostile(std::span<const std::byte> bytes);

}  // namespace snapkv::test
