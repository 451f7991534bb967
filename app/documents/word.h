// SPDX-License-Identifier: MIT
// The text of Word documents (.docx).
#pragma once

#include <string>

#include "documents/archive.h"
#include "documents/document_reader.h"

namespace snapkv::documents {

/// The text of `file`, the document's main part in its archive, with its notes at the end. Throws
/// Error{kUsage} naming the archive for damaged ones, and where there is more text than the limits
/// allow.
std::string word_text(Archive& archive, const std::string& file, const ReadLimits& limits);

}  // namespace snapkv::documents
