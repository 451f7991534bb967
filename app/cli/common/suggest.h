// SPDX-License-Identifier: MIT
// "Did you mean ...": the nearest of the known names to one that is not known. Used for options and
// environment variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snapkv::cli {

/// The name that takes the fewest inserted, dropped or changed characters, if that is no more than
/// a third of its length; else empty. The first of equals.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace snapkv::cli
