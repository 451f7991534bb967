// SPDX-License-Identifier: MIT
// The methods of texts, lists, tuples and dictionaries. Called by the interpreter.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

struct Method {
  std::string_view name;
  Function::Code code;  // nullptr: exists in Python, but a template may not use it
};

/// nullptr when values of this type have no such method.
const Method* find_method(const Value& self, std::string_view name);
/// Why a method without code can't be called.
std::string forbidden(const Value& self, std::string_view name);

const Method* find_text_method(std::string_view name);

}  // namespace snapkv::jinja
