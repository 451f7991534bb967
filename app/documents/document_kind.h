// SPDX-License-Identifier: MIT
// The kind of a file, by its first bytes.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::documents {

enum class Kind { text, html, pdf, zip, other };

struct FoundKind {
  Kind kind = Kind::text;
  std::string what = {};  ///< of Kind::other: "a JPEG image"
};

/// `name`: of the file; an ending .html, .htm or .xhtml tells HTML that does not begin like it.
FoundKind find_kind(std::string_view bytes, std::string_view name);

}  // namespace snapkv::documents
