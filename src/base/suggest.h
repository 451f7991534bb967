// SPDX-License-Identifier: MIT
// Finds the known name nearest to an unknown one, for "did you mean ...".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

/// Returns the shortest name that begins with `name`, else the one that needs the fewest inserted,
/// dropped or changed characters, if they are at most a third of its length; else an empty string.
/// The first one wins a tie.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace snapkv
