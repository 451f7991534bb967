// SPDX-License-Identifier: MIT
// read_hostile: does with any bytes what the engine does with a model file's header. The fuzz
// target and the tests call it.
#pragma once

#include <cstddef>
#include <span>

namespace snapkv::test {

/// How far the bytes got.
enum class Outcome { kNoFile, kNoTokenizer, kTokenizer };

/// Parses bytes as a GGUF file, touches every tensor's ends, makes the tokenizer, encodes and
/// decodes. Errors are expected and swallowed; anything else is a bug that crashes.
Outcome read_hostile(std::span<const std::byte> bytes);

}  // namespace snapkv::test
