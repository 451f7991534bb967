// SPDX-License-Identifier: MIT
// The methods of texts, lists, tuples and dictionaries.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

struct Method {
  std::string_view name;
  Function::Code code;  // nullptr: exists in Python, but templates may not use it
};

/// Returns nullptr if values of this type have no such method.
const Method* find_method(const Value& self, std::string_view name);
/// The message that explains why a method without code cannot be called.
std::string forbidden(const Value& self, std::string_view name);

const Method* find_text_method(std::string_view name);

}  // namespace snapkv::jinja
