// SPDX-License-Identifier: MIT
// Tests: value is name(arguments).
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

using TestCode = bool (*)(Interpreter& in, const Value& value, Arguments& args);

/// Returns nullptr if there is no test of this name.
TestCode find_test(std::string_view name);
/// The message for a name that find_test() does not know.
std::string unknown_test(std::string_view name);

}  // namespace snapkv::jinja
