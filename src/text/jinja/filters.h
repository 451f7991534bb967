// SPDX-License-Identifier: MIT
// Filters: value | name(arguments). Found by name here, implemented in filters_*.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/jinja/object.h"

namespace snapkv::jinja {

using FilterCode = Value (*)(Interpreter& in, const Value& value, Arguments& args);

struct NamedFilter {
  std::string_view name;
  FilterCode code;
};

/// Returns nullptr if there is no filter of this name.
FilterCode find_filter(std::string_view name);
/// The message for a name that find_filter() does not know.
std::string unknown_filter(std::string_view name);

std::span<const NamedFilter> text_filters();
std::span<const NamedFilter> number_filters();
std::span<const NamedFilter> sequence_filters();
std::span<const NamedFilter> selecting_filters();

}  // namespace snapkv::jinja
