// SPDX-License-Identifier: MIT
// The parser: turns a template's text into a syntax tree, by the grammar of Jinja 3.1 with loop
// controls and transformers' `generation`. A template cannot load others: the statements for that
// (include, import, extends, block) are errors, and so are unknown filters and tests.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace snapkv::jinja {

/// `source` must be valid UTF-8. Throws Error{kUsage} "line N: ..." if it is not a template or uses
/// something unsupported.
Block parse(std::string_view source);

}  // namespace snapkv::jinja
