// SPDX-License-Identifier: MIT
// Finds mistakes in configuration files that CLI11's parser accepts and misreads: lists and quotes
// that are not closed.
#pragma once

#include <string>

namespace snapkv::cli {

/// Throws Error{kUsage} naming `path`, the line and the setting when a value has an unclosed list
/// or quote, or text after its end, or when a section's name has too many parts.
void check_config_syntax(const std::string& text, const std::string& path);

}  // namespace snapkv::cli
