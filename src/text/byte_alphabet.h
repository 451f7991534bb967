// SPDX-License-Identifier: MIT
// The spelling of bytes in byte-level vocabularies: each of the 256 bytes is a printable character,
// itself where it is one in Latin-1, else one from U+0100 on, in order. From GPT-2 (Radford et al.
// 2019); BpeModel and tokenizers read and write tokens in it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv::byte_alphabet {

/// The characters by byte: U+0120 for a space.
const std::array<std::string, 256>& spellings();
/// The byte that a code point stands for; -1 for none.
int byte_of(uint32_t code_point);

/// Appends the spelling of all bytes.
void append(std::string& out, std::string_view bytes);
/// The bytes of a token; nullopt for one that has other characters.
std::optional<std::string> bytes_of(std::string_view token);

/// The byte of "<0x0A>", the other way to spell one; nullopt for another text.
std::optional<uint8_t> hex_byte(std::string_view token);
/// "<0x0A>"
std::string hex_spelling(uint8_t byte);

}  // namespace snapkv::byte_alphabet
