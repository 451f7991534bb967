// SPDX-License-Identifier: MIT
// The text of documents that are zip archives: EPUB and Word's .docx.
#pragma once

#include <string>
#include <string_view>

#include "documents/document_reader.h"

namespace snapkv::documents {

/// Throws Error{kUsage} naming `name` for other archives, damaged ones, and what expands to more
/// than the limits allow.
std::string archive_text(std::string_view bytes, const std::string& name, const ReadLimits& limits);

}  // namespace snapkv::documents
