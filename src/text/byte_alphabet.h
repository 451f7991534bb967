// SPDX-License-Identifier: MIT
// The spelling of bytes in byte-level vocabularies: each of the 256 bytes is written as a printable
// character: itself if it is printable in Latin-1, otherwise the next character from U+0100 on. It
// comes from GPT-2 (Radford et al. 2019).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv::byte_alphabet {

/// The character for each byte; a space is U+0120.
const std::array<std::string, 256>& spellings();
/// The byte that a code point stands for; -1 if it stands for none.
int byte_of(uint32_t code_point);

/// Appends the spelling of `bytes`.
void append(std::string& out, std::string_view bytes);
/// The bytes that a token spells; nullopt if it contains any other character.
std::optional<std::string> bytes_of(std::string_view token);

/// The byte of "<0x0A>", the other way to spell a byte; nullopt for any other text.
std::optional<uint8_t> hex_byte(std::string_view token);
/// "<0x0A>"
std::string hex_spelling(uint8_t byte);

}  // namespace snapkv::byte_alphabet
