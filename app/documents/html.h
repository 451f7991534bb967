// SPDX-License-Identifier: MIT
// The visible text of an HTML or XHTML page.
#pragma once

#include <string>

#include "documents/document_reader.h"

namespace snapkv::documents {

/// Paragraphs are separated by empty lines, items and rows by line breaks, cells by tabs; scripts,
/// styles and what is hidden are left out. The encoding is UTF-8, UTF-16, or what the page says of
/// itself. Throws Error{kUsage} naming `name`.
std::string html_text(std::string bytes, const std::string& name, const ReadLimits& limits);

}  // namespace snapkv::documents
