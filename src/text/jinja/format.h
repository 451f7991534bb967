// SPDX-License-Identifier: MIT
// Python's two kinds of formatting: "%s is %d" % (a, b) and "{} is {}".format(a, b). Called by
// operators, the filter `format` and the method `format`.
#pragma once

#include "text/jinja/object.h"

namespace snapkv::jinja {

/// text % argument: a tuple's values, a dict's entries by name, or one value.
Value format_percent(Interpreter& in, const Text& text, const Value& argument);
/// text.format(...)
Value format_braces(Interpreter& in, const Text& text, Arguments& args);

}  // namespace snapkv::jinja
