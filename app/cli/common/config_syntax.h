// SPDX-License-Identifier: MIT
// What CLI11's parser of configuration files would take without a word, and make something else of:
// lists and quotes that are not closed. Called by config_file.cpp before that parser.
#pragma once

#include <string>

namespace snapkv::cli {

/// Throws Error{kUsage} naming `path`, the line and the setting where a value of the file has a
/// list or a quote without an end, or something behind it, or a section's name has too many parts.
void check_config_syntax(const std::string& text, const std::string& path);

}  // namespace snapkv::cli
