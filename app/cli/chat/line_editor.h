// SPDX-License-Identifier: MIT
// The LineReader for terminals, built on libedit: line editing, history in a file, multi-line
// paste.
#pragma once

#include <memory>
#include <string>

#include "cli/chat/line_reader.h"

namespace snapkv::cli {

/// Throws kRuntime when the terminal cannot be used.
std::unique_ptr<LineReader> make_line_editor(const std::string& history_path);

}  // namespace snapkv::cli
