// SPDX-License-Identifier: MIT
// The parser: a template's text as a syntax tree, by the grammar of Jinja 3.1 with its loop
// controls and transformers' `generation`. Templates are alone: statements that load others
// (include, import, extends, block) are errors, and so are filters and tests that do not exist
// here.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace snapkv::jinja {

/// Throws Error{kUsage} "line N: ..." for what is no template or not supported. `source` is valid
/// UTF-8.
Block parse(std::string_view source);

}  // namespace snapkv::jinja
