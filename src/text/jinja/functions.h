// SPDX-License-Identifier: MIT
// The functions that every template can call: range, dict, namespace, cycler, joiner, and
// transformers' raise_exception and strftime_now.
#pragma once

#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

/// Returns nullptr if there is no such function.
Function::Code find_function(std::string_view name);

}  // namespace snapkv::jinja
