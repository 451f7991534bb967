// SPDX-License-Identifier: MIT
// The functions of the tokenizers' fuzz targets, which take arbitrary bytes. tests/text replays
// their corpora through the same functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::test {

/// A GGUF vocabulary and a text, as bytes:
///   u8 kind: "llama", "gpt2", "gemma4", "rwkv", "plamo2"
///   u8 pre-tokenizer, by its place among all names
///   u8 flags: 1 all byte tokens, 2 add_bos_token, 4 remove_extra_whitespaces
///   u8 n, n x { u8 type, u8 length, text }       tokens
///   u8 n, n x { u8 length, text }                merges
///   the text
/// Missing bytes at the end count as zero. Returns whether the vocabulary could be read.
bool use_hostile_vocabulary(std::span<const std::byte> bytes);
/// Writes the same format.
std::vector<std::byte> hostile_vocabulary(
    uint8_t kind, uint8_t pre, uint8_t flags,
    const std::vector<std::pair<uint8_t, std::string>>& tokens,
    const std::vector<std::string>& merges, std::string_view text);

/// A tokenizer.json, a zero byte and a text. Returns whether the file could be read.
bool use_hostile_tokenizer_json(std::span<const std::byte> bytes);

}  // namespace snapkv::test
