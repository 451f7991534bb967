// SPDX-License-Identifier: MIT
// Python's two ways of formatting: "%s is %d" % (a, b) and "{} is {}".format(a, b).
#pragma once

#include "text/jinja/object.h"

namespace snapkv::jinja {

/// text % argument: the values of a tuple, the entries of a dict by name, or one value.
Value format_percent(Interpreter& in, const Text& text, const Value& argument);
/// text.format(...)
Value format_braces(Interpreter& in, const Text& text, Arguments& args);

}  // namespace snapkv::jinja
