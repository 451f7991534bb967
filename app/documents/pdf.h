// SPDX-License-Identifier: MIT
// The text of a PDF, by poppler's pdftotext.
#pragma once

#include <string>
#include <string_view>

#include "documents/document_reader.h"

namespace snapkv::documents {

/// Pages are separated by empty lines. pdftotext runs as a process with limits of time and memory:
/// what a hostile file does to it ends there. Throws Error{kRuntime} where it is not installed or
/// can't be started, kUsage naming `name` for a file that it can't read or that has no text.
PagedText pdf_text(std::string_view bytes, const std::string& name, const ReadLimits& limits);

}  // namespace snapkv::documents
