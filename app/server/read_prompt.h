// SPDX-License-Identifier: MIT
// Prompts that another server has read: it saves the session after the prompt, and a server that is
// lent the file's bytes begins to answer at once (Request::read).
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace snapkv {
class SavedSessionFile;
}

namespace snapkv::server {

/// The notes of such a file, which say what was read.
std::string prompt_notes(std::span<const int32_t> tokens);
/// Whether a saved session's notes are of that kind.
bool is_prompt_notes(const std::string& notes);
/// What is wrong where `file` is not a session that has read exactly these tokens; empty: nothing.
std::string prompt_problem(const SavedSessionFile& file, std::span<const int32_t> tokens);

}  // namespace snapkv::server
