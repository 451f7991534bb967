// SPDX-License-Identifier: MIT
// Texts of other encodings as UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "documents/document_reader.h"

namespace snapkv::documents {

/// `bytes` as UTF-8, without a byte order mark: UTF-8 as it is; UTF-16 by its mark or by the zeros
/// in it; else `declared` (a name that iconv knows), or Latin-1 in its superset Windows-1252 where
/// that is empty. Throws Error{kUsage} naming `name` for what is no text, or none of these.
std::string to_utf8(std::string bytes, const std::string& declared, const std::string& name,
                    const ReadLimits& limits);

}  // namespace snapkv::documents
