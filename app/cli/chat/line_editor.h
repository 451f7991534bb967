// SPDX-License-Identifier: MIT
// The LineReader of terminals, by libedit: line editing, history in a file, pasted text of several
// lines. Made by make_line_reader().
#pragma once

#include <memory>
#include <string>

#include "cli/chat/line_reader.h"

namespace snapkv::cli {

/// Throws kRuntime when the terminal cannot be used.
std::unique_ptr<LineReader> make_line_editor(const std::string& history_path);

}  // namespace snapkv::cli
