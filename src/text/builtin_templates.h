// SPDX-License-Identifier: MIT
// The chat templates that are built in. Used by ChatTemplate::built_in().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv {

/// The Jinja source; nullopt when there is none of this name.
std::optional<std::string_view> find_builtin_template(std::string_view name);
/// In alphabetical order.
std::vector<std::string> builtin_template_names();

}  // namespace snapkv
